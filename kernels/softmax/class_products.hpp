// Products of a chunk of rows with k columns, stored as one plane of rows per class:
//   scores   z_c = X w_c + b_c        add   g_c += X'a_c
// For dense rows, W is transposed first, so that vectors run along features: no lane is wasted on padded classes, and
// the sums over the lanes of VL rows form one vector of a plane. Sparse rows process all classes of a feature at once,
// with K = padded_classes(k) numbers per row. Many features and classes use packed panels (softmax/panels.hpp), in
// precision E.
#pragma once
#include <optional>

#include "core/losses.hpp"
#include "core/rows.hpp"
#include "softmax/panels.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

template <class R, class E = double>
struct ByClass;

template <class T, class E>
struct ByClass<DenseRows<T>, E> {
    static constexpr int kScored = 3;                 // classes whose scores are summed together, for VL rows
    static constexpr int kAdded = 5;                  // classes whose sums are kept in registers,
    static constexpr int kStrip = VL > 4 ? 4 : 2;     // with this many vectors of features each
    static constexpr i64 kColumns = 256, kFew = 384;  // columns of VL rows that fit in the L1 cache
    static constexpr i64 kNear = 1 << 20;             // bytes of X that fit in the L2 cache

    const DenseRows<T>& X;
    i64 k, K, whole, stride;  // features in whole vectors; numbers per class in `turned`, with the tail
    double *turned, *G, *out;
    const double* intercepts[3] = {};
    std::optional<Panels<E>> panels;
    mutable i64 packed = -1;  // first row of the chunk that the panels hold

    // close() adds the sums to G_ (d + 1, K); scratch: 4 k (d + 8), or panel_scratch.
    ByClass(const DenseRows<T>& rows, i64 classes, double* G_, double* scratch)
        : X(rows),
          k(classes),
          K(padded_classes(classes)),
          whole(rows.d - rows.d % VL),
          stride(whole + VL),
          turned(scratch),
          G(scratch + 3 * k * stride),
          out(G_) {
        if (softmax_packed(true, X.d, k)) {
            panels.emplace(X.d, k, scratch);
            if (out) panels->clear();
            return;
        }
        for (i64 j = 0; out && j < k * stride; ++j) G[j] = 0.0;
    }
    // The lane of feature j >= whole in the tail (see core/row_lanes.hpp).
    i64 lane(i64 j) const { return whole + (X.d < VL ? j : j - (X.d - VL)); }

    // Store the transpose of W (d + 1, K) in slot `which` of three.
    void take(int which, const double* W) {
        if (panels) return panels->take(which, W);
        double* w = turned + which * k * stride;
        for (i64 c = 0; c < k; ++c) {
            double* to = w + c * stride;
            for (i64 j = 0; j < whole; ++j) to[j] = W[j * K + c];
            for (i64 j = whole; j < stride; ++j) to[j] = 0.0;
            for (i64 j = whole; j < X.d; ++j) to[lane(j)] = W[j * K + c];
        }
        intercepts[which] = W + X.d * K;
    }

    // Scores of VL rows p for C classes at z + c plane_rows, from the columns [lo, hi), and the tail at the end.
    // Prefetches `count` rows from `ahead` on, because hardware prefetchers do not follow many rows read in parallel.
    template <int C>
    void tile(const T* const* p, const double* w, const double* b, i64 lo, i64 hi, bool end, double* z, i64 plane_rows,
              const T* ahead, int count) const {
        vd acc[C][VL] = {};
        const auto add = [&](const auto& at, i64 j) {
            vd wv[C];
            for (int c = 0; c < C; ++c) wv[c] = load(w + c * stride + j);
            for (int q = 0; q < VL; ++q) {
                vd x = at(p[q]);
                keep(x);
                for (int c = 0; c < C; ++c) acc[c][q] += x * wv[c];
            }
        };
        for (i64 j = lo; j < hi; j += VL) {
            for (int q = 0; q < count; ++q) __builtin_prefetch(ahead + q * X.d + j, 0, 2);
            add([j](const T* row) { return load(row + j); }, j);
        }
        if (end && whole < X.d) add([d = X.d](const T* row) { return tail(row, d); }, whole);
        for (int c = 0; c < C; ++c)
            store(z + c * plane_rows, reduce(acc[c]) + (lo ? load(z + c * plane_rows) : splat(b[c])));
    }
    // Pack the chunk from row r on into the panels.
    void pack(i64 r, int nr) const {
        if (packed != r) panels->open(X, r, nr);
        packed = r;
    }
    void packed_scores(int which, i64 r, int nr, double* z, i64 plane_rows) const {
        pack(r, nr);
        panels->scores(which, nr, panels->Z);
        for (i64 c = 0; c < k; ++c) {
            for (int i = 0; i < nr; ++i) z[c * plane_rows + i] = (double)panels->Z[i * panels->K + c];
            for (int i = nr; i < padded(nr); ++i) z[c * plane_rows + i] = z[c * plane_rows + nr - 1];
        }
    }
    void packed_add(i64 r, int nr, const double* a, i64 plane_rows) const {
        pack(r, nr);
        for (int i = 0; i < nr; ++i)
            for (i64 c = 0; c < k; ++c) panels->Z[i * panels->K + c] = (E)a[c * plane_rows + i];
        panels->add(panels->Z, nr);
    }
    void scores(int which, i64 r, int nr, double* z, i64 plane_rows) const {
        if (panels) return packed_scores(which, r, nr, z, plane_rows);
        const i64 columns = whole > kFew ? kColumns : whole, groups = (k + kScored - 1) / kScored;
        const int share = (int)((VL + groups - 1) / groups);  // rows of the next VL to prefetch per group
        const bool far = X.n_entries() * (i64)sizeof(T) > kNear;
        for (int i = 0; i < nr; i += VL) {
            const T* p[VL];
            const i64 next = r + i + VL;
            const bool send = far && next + VL <= X.n;
            for (int q = 0; q < VL; ++q) p[q] = X.row(r + min64(i + q, nr - 1));
            i64 lo = 0;
            do {
                const i64 hi = min64(whole, lo + columns);
                i64 sent = 0;
                for_groups<kScored>([&](i64 c, auto C) {
                    const int count = send ? (int)min64(share, VL - sent) : 0;
                    tile<C.value>(p, turned + (which * k + c) * stride, intercepts[which] + c, lo, hi, hi == whole,
                                  z + c * plane_rows + i, plane_rows, X.row(next + sent), count);
                    sent += count;
                });
                lo = hi;
            } while (lo < whole);
        }
    }

    template <int C, int V, bool Tail>
    void strip(i64 r, int nr, const double* a, i64 plane_rows, i64 j, double* g) const {
        constexpr int N = V + Tail;
        vd acc[C][N] = {};
        for (int i = 0; i < nr; ++i) {
            const T* p = X.row(r + i);
            vd x[N];
            for (int v = 0; v < V; ++v) x[v] = load(p + j + v * VL), keep(x[v]);
            if constexpr (Tail) x[V] = tail(p, X.d), keep(x[V]);
            for (int c = 0; c < C; ++c) {
                const vd s = splat(a[c * plane_rows + i]);
                for (int v = 0; v < N; ++v) acc[c][v] += s * x[v];
            }
        }
        for (int c = 0; c < C; ++c)
            for (int v = 0; v < N; ++v) {
                double* at = g + c * stride + j + v * VL;
                store(at, load(at) + acc[c][v]);
            }
    }
    void add(i64 r, int nr, const double* a, i64 plane_rows) const {
        if (panels) return packed_add(r, nr, a, plane_rows);
        const i64 vectors = whole / VL;
        for_groups<kAdded>([&](i64 c, auto C) {
            if constexpr (C.value > 0) {
                const double* from = a + c * plane_rows;
                double* g = G + c * stride;
                i64 v = 0;
                for (; v + kStrip <= vectors; v += kStrip)
                    strip<C.value, kStrip, false>(r, nr, from, plane_rows, v * VL, g);
                with_count(vectors - v, [&](auto V) {
                    if constexpr (V.value < kStrip) {
                        if (whole < X.d)
                            strip<C.value, V.value, true>(r, nr, from, plane_rows, v * VL, g);
                        else if constexpr (V.value > 0)
                            strip<C.value, V.value, false>(r, nr, from, plane_rows, v * VL, g);
                    }
                });
            }
        });
    }
    void close() const {
        if (panels) return panels->close(out);
        for (i64 c = 0; c < k; ++c) {
            for (i64 j = 0; j < whole; ++j) out[j * K + c] += G[c * stride + j];
            for (i64 j = whole; j < X.d; ++j) out[j * K + c] += G[c * stride + lane(j)];
        }
    }

  private:
    // Call f(first class, count) for groups of at most Most classes of nearly equal size.
    template <int Most, class F>
    void for_groups(F f) const {
        const i64 groups = (k + Most - 1) / Most;
        for (i64 g = 0; g < groups; ++g) {
            const i64 c = k * g / groups;
            with_count(k * (g + 1) / groups - c, [&](auto C) {
                if constexpr (C.value >= 1 && C.value <= Most) f(c, C);
            });
        }
    }
};

template <class T, class E>
struct ByClass<CsrRows<T>, E> {
    const CsrRows<T>& X;
    i64 k, K;
    double *rowwise, *out;
    const double* W[3] = {};

    // scratch: K numbers for each row of a chunk
    ByClass(const CsrRows<T>& rows, i64 classes, double* G, double* scratch)
        : X(rows), k(classes), K(padded_classes(classes)), rowwise(scratch), out(G) {}
    void take(int which, const double* w) { W[which] = w; }

    // The K numbers of a row stay in registers; those of later features are prefetched.
    static constexpr i64 kAhead = 12;
    const double* ahead(const double* of, i64 p) const {
        return of + (i64)X.index[min64(p + kAhead, X.start[X.n] - 1)] * K;
    }
    template <int V>
    void score_row(i64 i, const double* w, double* z) const {
        vd acc[V];
        for (int v = 0; v < V; ++v) acc[v] = load(w + X.d * K + v * VL);
        for (i64 p = X.start[i]; p < X.start[i + 1]; ++p) {
            const double *from = w + (i64)X.index[p] * K, *next = ahead(w, p);
            for (int v = 0; v < V; v += 8 / VL) __builtin_prefetch(next + v * VL, 0, 2);
            const vd s = splat((double)X.x[p]);
            for (int v = 0; v < V; ++v) acc[v] += s * load(from + v * VL);
        }
        for (int v = 0; v < V; ++v) store(z + v * VL, acc[v]);
    }
    template <int V>
    void add_row(i64 i, const double* a) const {
        vd held[V];
        for (int v = 0; v < V; ++v) held[v] = load(a + v * VL);
        for (i64 p = X.start[i]; p < X.start[i + 1]; ++p) {
            double* to = out + (i64)X.index[p] * K;
            const double* next = ahead(out, p);
            for (int v = 0; v < V; v += 8 / VL) __builtin_prefetch(next + v * VL, 1, 2);
            const vd s = splat((double)X.x[p]);
            for (int v = 0; v < V; ++v) store(to + v * VL, load(to + v * VL) + s * held[v]);
        }
    }
    void scores(int which, i64 r, int nr, double* z, i64 plane_rows) const {
        if (K > 8 * VL)
            X.dots_k(r, nr, W[which], K, rowwise);
        else
            with_count(K / VL, [&](auto V) {
                if constexpr (V.value > 0)
                    for (int i = 0; i < nr; ++i) score_row<V.value>(r + i, W[which], rowwise + i * K);
            });
        for (int i = 0; i < nr; ++i)
            for (i64 c = 0; c < k; ++c) z[c * plane_rows + i] = rowwise[i * K + c];
        for (int i = nr; i < padded(nr); ++i)
            for (i64 c = 0; c < k; ++c) z[c * plane_rows + i] = 0.0;
    }
    void add(i64 r, int nr, const double* a, i64 plane_rows) const {
        for (int i = 0; i < nr; ++i) {
            for (i64 c = 0; c < k; ++c) rowwise[i * K + c] = a[c * plane_rows + i];
            for (i64 c = k; c < K; ++c) rowwise[i * K + c] = 0.0;
        }
        if (K > 8 * VL)
            X.add_k(r, nr, rowwise, K, out);
        else
            with_count(K / VL, [&](auto V) {
                if constexpr (V.value > 0)
                    for (int i = 0; i < nr; ++i) add_row<V.value>(r + i, rowwise + i * K);
            });
    }
    void close() const {}
};

}  // namespace
}  // namespace linsep::LINSEP_ARCH
