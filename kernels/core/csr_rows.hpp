// Linear algebra on a chunk of CSR rows; rows.hpp lists the operations.
#pragma once
#include "core/row_lanes.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

template <class T>
struct CsrRows {
    static constexpr bool dense = false;
    const T* x;
    const std::int32_t* index;
    const i64* start;
    i64 n, d;

    explicit CsrRows(const Rows& r)
        : x(static_cast<const T*>(r.values)), index(r.indices), start(r.starts), n(r.n), d(r.d) {}
    int chunk() const { return 64; }
    i64 n_entries() const { return start[n]; }

    double dot_row(i64 i, const double* w) const {
        double a = 0, b = 0, c = 0, e = 0;
        i64 p = start[i];
        const i64 end = start[i + 1];
        for (; p + 4 <= end; p += 4) {
            a += (double)x[p] * w[index[p]];
            b += (double)x[p + 1] * w[index[p + 1]];
            c += (double)x[p + 2] * w[index[p + 2]];
            e += (double)x[p + 3] * w[index[p + 3]];
        }
        for (; p < end; ++p) a += (double)x[p] * w[index[p]];
        return (a + b) + (c + e);
    }
    void dots(i64 r, int nr, const double* w, double b, double* z) const {
        for (int i = 0; i < nr; ++i) z[i] = dot_row(r + i, w) + b;
    }
    void scores_and_sizes(i64 r, int nr, const double* theta, double* z, double* q, double* square) const {
        for (int i = 0; i < nr; ++i) {
            double a[4] = {}, s[4] = {}, n[4] = {};
            i64 p = start[r + i];
            const i64 end = start[r + i + 1];
            for (; p + 4 <= end; p += 4)
                for (int v = 0; v < 4; ++v) {
                    const double xv = (double)x[p + v], t = xv * theta[index[p + v]];
                    a[v] += t;
                    s[v] += __builtin_fabs(t);
                    n[v] += xv * xv;
                }
            for (; p < end; ++p) {
                const double xv = (double)x[p], t = xv * theta[index[p]];
                a[0] += t;
                s[0] += __builtin_fabs(t);
                n[0] += xv * xv;
            }
            square[i] = (n[0] + n[1]) + (n[2] + n[3]);
            z[i] = (a[0] + a[1]) + (a[2] + a[3]) + theta[d];
            q[i] = (s[0] + s[1]) + (s[2] + s[3]) + __builtin_fabs(theta[d]);
        }
    }
    void scores_and_steps(i64 r, int nr, const double* base, const double* step, const double* size, double* z,
                          double* dz, double* q, double* square) const {
        for (int i = 0; i < nr; ++i) {
            double a[2] = {}, b[2] = {}, c[2] = {}, n[2] = {};
            i64 p = start[r + i];
            const i64 end = start[r + i + 1];
            const auto add = [&](i64 at, int v) {
                const double xv = (double)x[at];
                const i64 j = index[at];
                a[v] += xv * base[j];
                b[v] += xv * step[j];
                c[v] += __builtin_fabs(xv) * size[j];
                n[v] += xv * xv;
            };
            for (; p + 2 <= end; p += 2) add(p, 0), add(p + 1, 1);
            if (p < end) add(p, 0);
            z[i] = (a[0] + a[1]) + base[d];
            dz[i] = (b[0] + b[1]) + step[d];
            q[i] = (c[0] + c[1]) + size[d];
            square[i] = n[0] + n[1];
        }
    }
    void axpy(i64 i, double a, double* w) const {
        for (i64 p = start[i]; p < start[i + 1]; ++p) w[index[p]] += a * (double)x[p];
    }
    // w += a x_i, sum += c x_i unless null; return x_next . w with the new w. Prefetches row `ahead`.
    double axpy_dot(i64 i, double a, double* w, i64 next, i64 ahead, double c = 0.0, double* sum = nullptr) const {
        const i64 p = start[ahead], last = start[ahead + 1] - 1;
        for (i64 q = p; q < last; q += 64 / (i64)sizeof(T)) __builtin_prefetch(x + q, 0, 2);
        for (i64 q = p; q < last; q += 64 / (i64)sizeof(*index)) __builtin_prefetch(index + q, 0, 2);
        if (last >= p) __builtin_prefetch(x + last, 0, 2), __builtin_prefetch(index + last, 0, 2);
        if (a != 0.0 && sum)
            for (i64 q = start[i]; q < start[i + 1]; ++q) {
                const i64 j = index[q];
                w[j] += a * (double)x[q];
                sum[j] += c * (double)x[q];
            }
        else if (a != 0.0)
            axpy(i, a, w);
        return dot_row(next, w);
    }
    void add(i64 r, const int* list, int count, const double* a, double* g) const {
        for (int i = 0; i < count; ++i) axpy(r + list[i], a[i], g);
    }
    void add_squares(i64 i, double a, double* g) const {
        for (i64 p = start[i]; p < start[i + 1]; ++p) g[index[p]] += a * (double)x[p] * (double)x[p];
    }
    double norm2(i64 i) const {
        double s = 0;
        for (i64 p = start[i]; p < start[i + 1]; ++p) s += (double)x[p] * (double)x[p];
        return s;
    }
    // sum_j scale_j x_j^2: mu is 0 for sparse rows
    double spread(i64 i, const double*, const double* scale) const {
        double s = 0;
        for (i64 p = start[i]; p < start[i + 1]; ++p) s += scale[index[p]] * (double)x[p] * (double)x[p];
        return s;
    }
    double reach(i64 i, const double* w) const {  // |x|.|w|
        double s = 0;
        for (i64 p = start[i]; p < start[i + 1]; ++p) s += __builtin_fabs((double)x[p] * w[index[p]]);
        return s;
    }
    void dots_k(i64 r, int nr, const double* W, i64 k, double* Z) const {
        for (int i = 0; i < nr; ++i) {
            double* z = Z + i * k;
            if (k == 8) {  // in registers
                constexpr int V = 8 / VL;
                vd acc[V];
                for (int v = 0; v < V; ++v) acc[v] = load(W + d * k + v * VL);
                for (i64 p = start[r + i]; p < start[r + i + 1]; ++p) {
                    const double* w = W + (i64)index[p] * k;
                    const vd s = splat((double)x[p]);
                    for (int v = 0; v < V; ++v) acc[v] += s * load(w + v * VL);
                }
                for (int v = 0; v < V; ++v) store(z + v * VL, acc[v]);
                continue;
            }
            for (i64 c = 0; c < k; c += VL) store(z + c, load(W + d * k + c));
            for (i64 p = start[r + i]; p < start[r + i + 1]; ++p) {
                const double* w = W + (i64)index[p] * k;
                const vd s = splat((double)x[p]);
                for (i64 c = 0; c < k; c += VL) store(z + c, load(z + c) + s * load(w + c));
            }
        }
    }
    void add_k(i64 r, int nr, const double* A, i64 k, double* G) const {
        for (int i = 0; i < nr; ++i) {
            const double* a = A + i * k;
            for (i64 p = start[r + i]; p < start[r + i + 1]; ++p) {
                double* g = G + (i64)index[p] * k;
                const vd s = splat((double)x[p]);
                for (i64 c = 0; c < k; c += VL) store(g + c, load(g + c) + s * load(a + c));
            }
        }
    }
};

}  // namespace
}  // namespace linsep::LINSEP_ARCH
