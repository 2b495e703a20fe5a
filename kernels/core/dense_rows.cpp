// Dot products of dense rows with a vector and weighted sums of rows, for all row lengths.
// Compiled once per instruction set: see core/dispatch.cpp.
#include "core/dense_rows.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

// Products of eight rows with w, one row after the other: from memory this is two to three times as fast as reading
// eight rows in parallel, which hardware prefetchers do not follow. The N vectors of w stay in registers (0: none).
template <int N, class T>
void eight(const T* p, i64 d, const double* w, i64 whole, vd last, vd* a) {
    vd held[N ? N : 1];
    for (int v = 0; v < N; ++v) held[v] = load(w + v * VL);
    for (int q = 0; q < 8; ++q, p += d) {
        vd s[4] = {};
        i64 j = 0;
        if constexpr (N > 0) {
            for (int v = 0; v < N; ++v) s[v % 2] += load(p + v * VL) * held[v];
        } else {
            for (; j + 4 * VL <= whole; j += 4 * VL)
                for (int v = 0; v < 4; ++v) s[v] += load(p + j + v * VL) * load(w + j + v * VL);
            for (; j < whole; j += VL) s[0] += load(p + j) * load(w + j);
            s[0] += s[2], s[1] += s[3];
        }
        if (whole < d) s[1] += tail(p, d) * last;
        a[q] = s[0] + s[1];
    }
}
template <class T>
void dots(const T* x, i64 d, int nr, const double* w, double b, double* z) {
    int i = 0;
    if (nr >= 8) {
        const i64 whole = d - d % VL;
        const vd last = whole < d ? tail_weights(w, d) : vd{};
        const auto all = [&](auto N) {
            for (; i + 8 <= nr; i += 8) {
                vd a[8];
                eight<N.value>(x + i * d, d, w, whole, last, a);
                for (int q = 0; q < 8; q += VL) store(z + i + q, reduce(a + q) + b);
            }
        };
        if (whole / VL <= 8)
            with_count(whole / VL, all);
        else
            all(Count<0>{});
    }
    const DenseRows<T> X(x, nr, d);
    for (; i < nr; ++i) z[i] = X.dot_row(i, w) + b;
}

// Sums of N vectors of columns from j0 on (and, with Tail, of the last VL columns, which overlap them), kept in
// registers over the rows.
template <int N, bool Tail, class T>
void strip(const T* x, i64 d, const int* list, int count, const double* a, i64 j0, double* g) {
    vd acc[N] = {};
    vd rest{};
    for (int i = 0; i < count; ++i) {
        const T* p = x + list[i] * d;
        const vd s = splat(a[i]);
        for (int v = 0; v < N; ++v) acc[v] += s * load(p + j0 + v * VL);
        if (Tail) rest += s * load(p + d - VL);
    }
    for (int v = 0; v < N; ++v) store(g + j0 + v * VL, load(g + j0 + v * VL) + acc[v]);
    if (Tail) {
        double t[VL];
        store(t, rest);
        for (i64 j = d - d % VL; j < d; ++j) g[j] += t[j - (d - VL)];
    }
}
template <class T>
void add(const T* x, i64 d, const int* list, int count, const double* a, double* g) {
    if (d < VL) {
        vd sums[4] = {};
        int i = 0;
        for (; i + 4 <= count; i += 4)
            for (int v = 0; v < 4; ++v) sums[v] += a[i + v] * load_first(x + list[i + v] * d, d);
        for (; i < count; ++i) sums[0] += a[i] * load_first(x + list[i] * d, d);
        double t[VL];
        store(t, (sums[0] + sums[1]) + (sums[2] + sums[3]));
        for (i64 j = 0; j < d; ++j) g[j] += t[j];
        return;
    }
    const i64 vectors = d / VL;
    for (i64 v = 0; v < vectors; v += 8) {
        const int now = (int)min64(8, vectors - v);
        with_count(now, [&](auto N) {
            if (d % VL && v + now == vectors)
                strip<N.value, true>(x, d, list, count, a, v * VL, g);
            else
                strip<N.value, false>(x, d, list, count, a, v * VL, g);
        });
    }
}

}  // namespace

void dense_dots(const double* x, i64 d, int nr, const double* w, double b, double* z) { dots(x, d, nr, w, b, z); }
void dense_dots(const float* x, i64 d, int nr, const double* w, double b, double* z) { dots(x, d, nr, w, b, z); }
void dense_add(const double* x, i64 d, const int* list, int count, const double* a, double* g) {
    add(x, d, list, count, a, g);
}
void dense_add(const float* x, i64 d, const int* list, int count, const double* a, double* g) {
    add(x, d, list, count, a, g);
}

}  // namespace linsep::LINSEP_ARCH
