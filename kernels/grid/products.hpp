// Matrix products of a grid (grid/closing.hpp): listed rows times one column for every model.
#pragma once
#include "core/rows.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

// Z (R rows, V vectors of columns) = X W + W[d]
template <int R, int V, class T>
inline void score_tile(const T* const* rows, i64 d, const double* W, i64 k, i64 c, double* Z) {
    vd acc[R][V];
    for (int q = 0; q < R; ++q)
        for (int v = 0; v < V; ++v) acc[q][v] = load(W + d * k + c + v * VL);
    for (i64 j = 0; j < d; ++j) {
        vd wv[V];
        for (int v = 0; v < V; ++v) {
            wv[v] = load(W + j * k + c + v * VL);
            if (VL == 8) keep(wv[v]);
        }
        for (int q = 0; q < R; ++q) {
            vd s = splat((double)rows[q][j]);
            if (VL == 8) keep(s);
            for (int v = 0; v < V; ++v) acc[q][v] += s * wv[v];
        }
    }
    for (int q = 0; q < R; ++q)
        for (int v = 0; v < V; ++v) store(Z + q * k + c + v * VL, acc[q][v]);
}
template <int V, class T>
void score_columns(const T* const* rows, int nr, i64 d, const double* W, i64 k, i64 c, double* Z) {
    int i = 0;
    for (; i + 4 <= nr; i += 4) score_tile<4, V>(rows + i, d, W, k, c, Z + i * k);
    for (; i < nr; ++i) score_tile<1, V>(rows + i, d, W, k, c, Z + i * k);
}
// Prefetch a row that will be needed soon.
template <class T>
inline void fetch_row(const T* p, i64 d) {
    for (i64 j = 0; j < d; j += 64 / (i64)sizeof(T)) __builtin_prefetch(p + j, 0, 2);
    __builtin_prefetch(p + d - 1, 0, 2);
}
// Scores of nr listed rows; `more` is the number of rows that follow in the list, which are prefetched.
template <class T>
void list_scores(const DenseRows<T>& X, const i64* list, int nr, i64 more, const double* W, i64 k, double* Z) {
    const T* rows[kGridRows];
    for (int i = 0; i < nr; ++i) rows[i] = X.row(list[i]);
    for (int i = 0; i < nr && i < more; ++i) fetch_row(X.row(list[nr + i]), X.d);
    constexpr int most = VL == 8 ? 4 : 3;  // vectors of a tile
    i64 c = 0;
    for (; c + most * VL <= k; c += most * VL) score_columns<most>(rows, nr, X.d, W, k, c, Z);
    for (; c + 2 * VL <= k; c += 2 * VL) score_columns<2>(rows, nr, X.d, W, k, c, Z);
    if (c < k) score_columns<1>(rows, nr, X.d, W, k, c, Z);
}
template <class T>
void list_scores(const CsrRows<T>& X, const i64* list, int nr, i64, const double* W, i64 k, double* Z) {
    for (int i = 0; i < nr; ++i) X.dots_k(list[i], 1, W, k, Z + i * k);
}

template <int V, class T>
void outer_columns(const T* const* rows, int nr, i64 d, const double* A, i64 k, i64 c, double* G) {
    const auto row = [rows](int i) { return rows[i]; };
    i64 j = 0;
    for (; j + 6 <= d; j += 6) outer_tile<6, V>(row, nr, j, A, k, c, G);
    for (; j + 2 <= d; j += 2) outer_tile<2, V>(row, nr, j, A, k, c, G);
    if (j < d) outer_tile<1, V>(row, nr, j, A, k, c, G);
}
template <class T>
void add_list(const DenseRows<T>& X, const i64* list, int nr, const double* A, i64 k, double* G) {
    const T* rows[kGridRows];
    for (int i = 0; i < nr; ++i) rows[i] = X.row(list[i]);
    i64 c = 0;
    for (; c + 3 * VL <= k && c + 4 * VL != k; c += 3 * VL) outer_columns<3>(rows, nr, X.d, A, k, c, G);
    for (; c + 2 * VL <= k; c += 2 * VL) outer_columns<2>(rows, nr, X.d, A, k, c, G);
    if (c < k) outer_columns<1>(rows, nr, X.d, A, k, c, G);
}
template <class T>
void add_list(const CsrRows<T>& X, const i64* list, int nr, const double* A, i64 k, double* G) {
    for (int i = 0; i < nr; ++i) X.add_k(list[i], 1, A + i * k, k, G);
}

// Transpose VL vectors of VL numbers.
inline void transpose(vd* a) {
#if LINSEP_LANES == 8
    vd b[8], c[8];
    for (int i = 0; i < 8; i += 2) {
        b[i] = shuffle<0, 8, 2, 10, 4, 12, 6, 14>(a[i], a[i + 1]);
        b[i + 1] = shuffle<1, 9, 3, 11, 5, 13, 7, 15>(a[i], a[i + 1]);
    }
    for (int i = 0; i < 8; i += 4)
        for (int v = 0; v < 2; ++v) {
            c[i + v] = shuffle<0, 1, 8, 9, 4, 5, 12, 13>(b[i + v], b[i + v + 2]);
            c[i + v + 2] = shuffle<2, 3, 10, 11, 6, 7, 14, 15>(b[i + v], b[i + v + 2]);
        }
    for (int v = 0; v < 4; ++v) {
        a[v] = shuffle<0, 1, 2, 3, 8, 9, 10, 11>(c[v], c[v + 4]);
        a[v + 4] = shuffle<4, 5, 6, 7, 12, 13, 14, 15>(c[v], c[v + 4]);
    }
#elif LINSEP_LANES == 4
    vd b[4];
    for (int i = 0; i < 4; i += 2) {
        b[i] = shuffle<0, 4, 2, 6>(a[i], a[i + 1]);
        b[i + 1] = shuffle<1, 5, 3, 7>(a[i], a[i + 1]);
    }
    for (int v = 0; v < 2; ++v) {
        a[v] = shuffle<0, 1, 4, 5>(b[v], b[v + 2]);
        a[v + 2] = shuffle<2, 3, 6, 7>(b[v], b[v + 2]);
    }
#else
    const vd b = shuffle<0, 2>(a[0], a[1]);
    a[1] = shuffle<1, 3>(a[0], a[1]);
    a[0] = b;
#endif
}
// to (b, a) = transpose of from (a, b); a and b are multiples of VL.
inline void transpose(i64 a, i64 b, const double* from, i64 from_stride, double* to, i64 to_stride) {
    for (i64 q = 0; q < b; q += VL)
        for (i64 i = 0; i < a; i += VL) {
            vd t[VL];
            for (int v = 0; v < VL; ++v) t[v] = load(from + (i + v) * from_stride + q);
            transpose(t);
            for (int v = 0; v < VL; ++v) store(to + (q + v) * to_stride + i, t[v]);
        }
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
