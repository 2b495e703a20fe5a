// Linear algebra on a chunk of dense rows; rows.hpp lists the operations.
#pragma once
#include "core/row_lanes.hpp"

namespace linsep::LINSEP_ARCH {

// DenseRows::dots of `nr` rows and DenseRows::add of the listed rows, of d numbers each, starting at x. These loops
// have many unrolled variants, so they are compiled once per instruction set (core/dense_rows.cpp).
void dense_dots(const double* x, i64 d, int nr, const double* w, double b, double* z);
void dense_dots(const float* x, i64 d, int nr, const double* w, double b, double* z);
void dense_add(const double* x, i64 d, const int* list, int count, const double* a, double* g);
void dense_add(const float* x, i64 d, const int* list, int count, const double* a, double* g);

namespace {

// G (d, k) += X'A, A (nr, k), for J features from j and V vectors of columns from c; row(i) is row i of X. The sums are
// kept in registers over the rows.
template <int J, int V, class Row>
inline void outer_tile(Row row, int nr, i64 j, const double* A, i64 k, i64 c, double* G) {
    vd acc[J][V] = {};
    for (int i = 0; i < nr; ++i) {
        const auto* p = row(i) + j;
        vd av[V];
        for (int v = 0; v < V; ++v) av[v] = load(A + i * k + c + v * VL);
        for (int q = 0; q < J; ++q) {
            const vd s = splat((double)p[q]);
            for (int v = 0; v < V; ++v) acc[q][v] += s * av[v];
        }
    }
    for (int q = 0; q < J; ++q)
        for (int v = 0; v < V; ++v) {
            double* g = G + (j + q) * k + c + v * VL;
            store(g, load(g) + acc[q][v]);
        }
}

template <class T>
struct DenseRows {
    static constexpr bool dense = true;
    const T* x;
    i64 n, d;

    DenseRows(const T* values, i64 rows, i64 columns) : x(values), n(rows), d(columns) {}
    explicit DenseRows(const Rows& r) : DenseRows(static_cast<const T*>(r.values), r.n, r.d) {}
    const T* row(i64 i) const { return x + i * d; }
    i64 n_entries() const { return n * d; }
    int chunk() const {
        i64 c = (i64)131072 / ((d + 1) * (i64)sizeof(T)) / 8 * 8;
        return (int)(c < 8 ? 8 : c > kMaxChunk ? kMaxChunk : c);
    }

    // Call f on the columns from j on that do not fill a vector, in pieces of 4, 2 and 1. The pieces are always the
    // same, so that a load matches the preceding store to the same address and store forwarding works.
    template <class F>
    void leftover(i64 j, F f) const {
        if constexpr (VL > 4)
            if (j + 4 <= d) f(Piece<v4d, v4f>{}, j), j += 4;
        if constexpr (VL > 2)
            if (j + 2 <= d) f(Piece<v2d, v2f>{}, j), j += 2;
        if (j < d) f(Piece<v1d, v1f>{}, j);
    }
    double dot(const T* p, const double* w) const {
        i64 j = 0;
        vd a[4] = {};
        for (; j + 4 * VL <= d; j += 4 * VL)
            for (int v = 0; v < 4; ++v) a[v] += load(p + j + v * VL) * load(w + j + v * VL);
        for (; j + VL <= d; j += VL) a[0] += load(p + j) * load(w + j);
        double s = 0;
        leftover(j, [&](auto piece, i64 at) { s += piece.sum(piece.load(p + at) * piece.load(w + at)); });
        return s + total((a[0] + a[1]) + (a[2] + a[3]));
    }

    void dots(i64 r, int nr, const double* w, double b, double* z) const { dense_dots(row(r), d, nr, w, b, z); }

    // N sums over the columns of each row, in one read: add(a, x, w) adds the contribution of the entries x with the K
    // weights w to the sums a. sums[k] is padded to whole vectors of rows, in which the last row is repeated.
    // Sums K .. N-1 use no weights.
    template <int K, int N, class Add>
    void accumulate(i64 r, int nr, const double* const (&weights)[K], double* const (&sums)[N], const Add& add) const {
        static_assert(N >= K);
        constexpr int G = VL / 2;  // rows at a time: more would not fit in registers
        const i64 whole = d - d % VL;
        vd last[K] = {};
        for (int k = 0; whole < d && k < K; ++k) last[k] = tail_weights(weights[k], d);
        vi fresh = vi{} - 1;  // lanes of the last vector of a row that do not overlap the one before
        for (int v = 0; whole < d && v < VL - d % VL && d >= VL; ++v) fresh[v] = 0;
        for (int i = 0; i < nr; i += VL) {
            vd a[N][VL];
            for (int half = 0; half < 2; ++half) {
                const T* p[G];
                for (int q = 0; q < G; ++q) p[q] = row(r + (int)min64(i + half * G + q, nr - 1));
                vd s[G][N] = {};
                for (i64 j = 0; j < whole; j += VL) {
                    vd w[K];
                    for (int k = 0; k < K; ++k) w[k] = load(weights[k] + j);
                    for (int q = 0; q < G; ++q) add(s[q], load(p[q] + j), w);
                }
                if (whole < d)
                    for (int q = 0; q < G; ++q) add(s[q], select(fresh, tail(p[q], d), vd{}), last);
                for (int q = 0; q < G; ++q)
                    for (int k = 0; k < N; ++k) a[k][half * G + q] = s[q][k];
            }
            for (int k = 0; k < N; ++k) store(sums[k] + i, k < K ? reduce(a[k]) + weights[k][d] : reduce(a[k]));
        }
    }
    // z = x.theta + b, q = |x|.|theta| + |b| and the squared norm |x|^2
    void scores_and_sizes(i64 r, int nr, const double* theta, double* z, double* q, double* square) const {
        accumulate<1, 3>(r, nr, {theta}, {z, q, square}, [](vd* a, vd x, const vd* w) {
            keep(x);
            const vd xt = x * w[0];
            a[0] += xt;
            a[1] += vabs(xt);
            a[2] += x * x;
        });
        for (int i = 0; i < nr; ++i) q[i] += __builtin_fabs(theta[d]);
    }
    // z = x.base + b0, dz = x.step + b1, q = |x|.size + b2 and |x|^2
    void scores_and_steps(i64 r, int nr, const double* base, const double* step, const double* size, double* z,
                          double* dz, double* q, double* square) const {
        accumulate<3, 4>(r, nr, {base, step, size}, {z, dz, q, square}, [](vd* a, vd x, const vd* w) {
            keep(x);
            a[0] += x * w[0];
            a[1] += x * w[1];
            a[2] += vabs(x) * w[2];
            a[3] += x * x;
        });
    }

    // Products of up to four rows over the columns [lo, hi): out[a] = x_a.w, out[4 + 4 a + b] = x_a.x_b for a < b.
    template <int N>
    void products_of(const i64* rows, const double* w, i64 lo, i64 hi, double* out) const {
        const T* p[N];
        for (int a = 0; a < N; ++a) p[a] = row(rows[a]);
        vd s[N] = {}, g[N][N] = {};
        i64 j = lo;
        for (; j + VL <= hi; j += VL) {
            vd x[N];
            for (int a = 0; a < N; ++a) x[a] = load(p[a] + j), keep(x[a]);
            const vd v = load(w + j);
            for (int a = 0; a < N; ++a) {
                s[a] += x[a] * v;
                for (int b = a + 1; b < N; ++b) g[a][b] += x[a] * x[b];
            }
        }
        for (int a = 0; a < N; ++a) {
            out[a] = total(s[a]);
            for (int b = a + 1; b < N; ++b) out[4 + 4 * a + b] = total(g[a][b]);
        }
        for (; j < hi; ++j)
            for (int a = 0; a < N; ++a) {
                out[a] += (double)p[a][j] * w[j];
                for (int b = a + 1; b < N; ++b) out[4 + 4 * a + b] += (double)p[a][j] * (double)p[b][j];
            }
    }
    void products(const i64* rows, int count, const double* w, i64 lo, i64 hi, double* out) const {
        with_count(count, [&](auto N) {
            if constexpr (N.value >= 1 && N.value <= 4) products_of<N.value>(rows, w, lo, hi, out);
        });
    }
    // w += sum_a c_a x_a of up to four rows, in the columns [lo, hi)
    void axpy_some(const i64* rows, int count, const double* c, i64 lo, i64 hi, double* w) const {
        const T* p[4];
        double by[4] = {};
        int used = 0;
        for (int a = 0; a < count; ++a)
            if (c[a] != 0.0) p[used] = row(rows[a]), by[used++] = c[a];
        with_count(used, [&](auto N) {
            if constexpr (N.value >= 1 && N.value <= 4) {
                i64 j = lo;
                for (; j + VL <= hi; j += VL) {
                    vd v = load(w + j);
                    for (int a = 0; a < N.value; ++a) v += by[a] * load(p[a] + j);
                    store(w + j, v);
                }
                for (; j < hi; ++j)
                    for (int a = 0; a < N.value; ++a) w[j] += by[a] * (double)p[a][j];
            }
        });
    }

    void add(i64 r, const int* list, int count, const double* a, double* g) const {
        dense_add(row(r), d, list, count, a, g);
    }

    void add_squares(i64 i, double a, double* g) const {
        const T* p = row(i);
        for (i64 j = 0; j < d; ++j) g[j] += a * (double)p[j] * (double)p[j];
    }
    double norm2(i64 i) const {
        const T* p = row(i);
        vd a{};
        i64 j = 0;
        for (; j + VL <= d; j += VL) a += load(p + j) * load(p + j);
        double s = 0;
        for (; j < d; ++j) s += (double)p[j] * (double)p[j];
        return s + total(a);
    }
    // sum_j scale_j (x_j - mu_j)^2
    double spread(i64 i, const double* mu, const double* scale) const {
        const T* p = row(i);
        vd a{};
        i64 j = 0;
        for (; j + VL <= d; j += VL) {
            const vd x = load(p + j) - load(mu + j);
            a += x * x * load(scale + j);
        }
        double s = 0;
        for (; j < d; ++j) s += ((double)p[j] - mu[j]) * ((double)p[j] - mu[j]) * scale[j];
        return s + total(a);
    }
    double reach(i64 i, const double* w) const {  // |x|.|w|
        const T* p = row(i);
        vd a{};
        i64 j = 0;
        for (; j + VL <= d; j += VL) a += vabs(load(p + j) * load(w + j));
        double s = 0;
        for (; j < d; ++j) s += __builtin_fabs((double)p[j] * w[j]);
        return s + total(a);
    }
    void axpy(i64 i, double a, double* w) const {
        const T* p = row(i);
        i64 j = 0;
        for (; j + VL <= d; j += VL) store(w + j, load(w + j) + a * load(p + j));
        leftover(j, [&](auto piece, i64 at) { piece.store(w + at, piece.load(w + at) + a * piece.load(p + at)); });
    }
    // w += a x_i, sum += c x_i unless null; return x_next . w with the new w, in one loop over both rows. Prefetches
    // row `ahead`.
    double axpy_dot(i64 i, double a, double* w, i64 next, i64 ahead, double c = 0.0, double* sum = nullptr) const {
        if (a == 0.0) return walk<false, false>(i, a, w, next, ahead, c, sum);
        return sum ? walk<true, true>(i, a, w, next, ahead, c, sum) : walk<true, false>(i, a, w, next, ahead, c, sum);
    }
    template <bool Add, bool Both>
    [[gnu::always_inline]] double walk(i64 i, double a, double* w, i64 next, i64 ahead, double c, double* sum) const {
        const T *p = row(i), *x = row(next), *far = row(ahead);
        constexpr i64 kLine = 64 / (i64)sizeof(T);
        i64 j = 0;
        vd sums[4] = {};
        const auto at = [&](i64 k) {
            vd now = load(w + k);
            if constexpr (Add) store(w + k, now = now + a * load(p + k));
            if constexpr (Both) store(sum + k, load(sum + k) + c * load(p + k));
            return load(x + k) * now;
        };
        for (; j + 4 * VL <= d; j += 4 * VL) {
            for (i64 k = 0; k < 4 * VL; k += kLine) __builtin_prefetch(far + j + k, 0, 2);
            for (int v = 0; v < 4; ++v) sums[v] += at(j + v * VL);
        }
        for (i64 k = j; k < d; k += kLine) __builtin_prefetch(far + k, 0, 2);
        __builtin_prefetch(far + d - 1, 0, 2);  // rows are not aligned to cache lines
        for (; j + VL <= d; j += VL) sums[0] += at(j);
        double s = 0;
        leftover(j, [&](auto piece, i64 k) {
            auto now = piece.load(w + k);
            if constexpr (Add) piece.store(w + k, now = now + a * piece.load(p + k));
            if constexpr (Both) piece.store(sum + k, piece.load(sum + k) + c * piece.load(p + k));
            s += piece.sum(piece.load(x + k) * now);
        });
        return s + total((sums[0] + sums[1]) + (sums[2] + sums[3]));
    }
    double dot_row(i64 i, const double* w) const { return dot(row(i), w); }

    // Z (nr, k) = X W + W[d] for k columns, k a multiple of VL. Eight sums are kept in registers: four rows by two
    // vectors of columns, or eight rows by one.
    template <int R, int V>
    void tile_k(const T* p, const double* W, i64 k, i64 c, double* Z) const {
        vd acc[R][V];
        for (int q = 0; q < R; ++q)
            for (int v = 0; v < V; ++v) acc[q][v] = load(W + d * k + c + v * VL);
        for (i64 j = 0; j < d; ++j) {
            vd wv[V];
            for (int v = 0; v < V; ++v) wv[v] = load(W + j * k + c + v * VL);
            for (int q = 0; q < R; ++q) {
                const vd s = splat((double)p[q * d + j]);
                for (int v = 0; v < V; ++v) acc[q][v] += s * wv[v];
            }
        }
        for (int q = 0; q < R; ++q)
            for (int v = 0; v < V; ++v) store(Z + q * k + c + v * VL, acc[q][v]);
    }
    void dots_k(i64 r, int nr, const double* W, i64 k, double* Z) const {
        for (i64 c = 0; c < k;) {
            const bool wide = c + 2 * VL <= k;
            int i = 0;
            if (!wide)
                for (; i + 8 <= nr; i += 8) tile_k<8, 1>(row(r + i), W, k, c, Z + i * k);
            for (; i + 4 <= nr; i += 4)
                wide ? tile_k<4, 2>(row(r + i), W, k, c, Z + i * k) : tile_k<4, 1>(row(r + i), W, k, c, Z + i * k);
            for (; i < nr; ++i)
                wide ? tile_k<1, 2>(row(r + i), W, k, c, Z + i * k) : tile_k<1, 1>(row(r + i), W, k, c, Z + i * k);
            c += wide ? 2 * VL : VL;
        }
    }
    template <int J, int V>
    void outer_k(i64 r, int nr, i64 j, const double* A, i64 k, i64 c, double* G) const {
        outer_tile<J, V>([this, r](int i) { return row(r + i); }, nr, j, A, k, c, G);
    }
    void add_k(i64 r, int nr, const double* A, i64 k, double* G) const {
        for (i64 c = 0; c < k;) {
            const bool wide = c + 2 * VL <= k;
            i64 j = 0;
            for (; j + 4 <= d; j += 4) wide ? outer_k<4, 2>(r, nr, j, A, k, c, G) : outer_k<4, 1>(r, nr, j, A, k, c, G);
            for (; j < d; ++j) wide ? outer_k<1, 2>(r, nr, j, A, k, c, G) : outer_k<1, 1>(r, nr, j, A, k, c, G);
            c += wide ? 2 * VL : VL;
        }
    }
};

}  // namespace
}  // namespace linsep::LINSEP_ARCH
