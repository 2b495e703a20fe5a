// Weighted Gram matrix  H = sum_i h_i (x_i - mu, 1)(x_i - mu, 1)'  of order D = d + 1.
//
// Dense: a few hundred rows with h > 0 at a time are packed as sqrt(h) (x - mu, 1), and tiles of the upper triangle are
// kept in registers over the packed rows. Subtracting mu while packing is the standardised view: it
// costs nothing and spares H the cancellation that columns with a large mean bring.
// Single precision: sums of at most 256 rows are made in float, everything above in double. Up to 1.7 times as fast,
// and exact to 1e-7 of the diagonal.
// CSR: each pair of entries of a row adds to one triangle (mu must be 0); the caller adds the transpose.
#pragma once
#include "core/interrupt.hpp"
#include "core/rows.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

// Numbers of type E, several at once.
template <class E>
struct Lanes {
    static constexpr int count = sizeof(vd) / sizeof(E);
    typedef E vector __attribute__((vector_size(sizeof(vd))));
    static vector load(const E* p) {
        vector v;
        std::memcpy(&v, p, sizeof v);
        return v;
    }
};

// A tile has kGramColumns<E> columns, one vector of the widest instruction set, and up to so many rows; what it sums
// up stays in registers.
template <class E>
constexpr int kTileRows = VL == 8   ? kGramColumns<E>
                          : VL == 4 ? 4
                                    : 2;

// out (I or fewer rows, `width` or fewer columns, rows `order` apart) += A' B over the packed rows.
template <class E, int I>
inline void tile(const E* a, const E* b, i64 stride, int rows, double* out, i64 order, i64 height, i64 width) {
    constexpr int W = kGramColumns<E>, V = W / Lanes<E>::count;
    typename Lanes<E>::vector acc[I][V] = {};
    for (int r = 0; r < rows; ++r, a += stride, b += stride) {
        typename Lanes<E>::vector bv[V];
        for (int v = 0; v < V; ++v) bv[v] = Lanes<E>::load(b + v * Lanes<E>::count);
        for (int q = 0; q < I; ++q) {
            const typename Lanes<E>::vector s = a[q] - typename Lanes<E>::vector{};
            for (int v = 0; v < V; ++v) acc[q][v] += s * bv[v];
        }
    }
    for (int q = 0; q < I && q < height; ++q, out += order) {
        E row[W];
        std::memcpy(row, acc[q], sizeof row);
        if (width >= W)
            for (int j = 0; j < W; j += VL) store(out + j, load(out + j) + load(row + j));
        else
            for (i64 j = 0; j < width; ++j) out[j] += (double)row[j];
    }
}

constexpr i64 kPolledColumns = 128;  // whose tiles are made between two polls

// The tiles of the upper triangle.
template <class E>
void add_tiles(const E* pack, i64 columns, i64 stride, int rows, double* out, i64 order) {
    constexpr int W = kGramColumns<E>, I = kTileRows<E>;
    for (i64 j = 0; j < columns; j += W) {
        if (j % kPolledColumns == 0) poll();
        for (i64 i = 0; i < j + W && i < columns; i += I) {
            const auto one = [&](auto high) {
                tile<E, high.value>(pack + i, pack + j, stride, rows, out + i * order + j, order, columns - i,
                                    columns - j);
            };
            const i64 high = columns - i;
            if (I > 12 && high > 12)
                one(Count<I>{});
            else if (I > 8 && high > 8)
                one(Count<(I < 12 ? I : 12)>{});
            else if (I > 4 && high > 4)
                one(Count<(I < 8 ? I : 8)>{});
            else
                one(Count<(I < 4 ? I : 4)>{});
        }
    }
}

// The dense Gram with packed numbers of type E; without `one` the column of ones is left out.
template <class E, class T>
void packed_gram(const DenseRows<T>& X, i64 lo, i64 hi, const double* h, const double* mu, double* out, E* pack,
                 bool one) {
    typedef E piece __attribute__((vector_size(VL * sizeof(E))));
    const i64 d = X.d, whole = d - d % VL, columns = one ? d + 1 : d, stride = gram_stride<E>(d);
    const int most = (int)min64(gram_rows<E>(d), hi - lo);
    for (int r = 0; r < most; ++r)
        for (i64 j = columns; j < stride; ++j) pack[r * stride + j] = 0;
    const vd last = whole < d ? tail(mu, d) : vd{};
    double root[kMaxGramRows];
    int list[kMaxGramRows], rows = 0;
    for (i64 r = lo; r < hi;) {
        const int nr = (int)min64(most - rows, hi - r);
        int count = 0;
        for (int i = 0; i < nr; ++i) {
            root[count] = h[r + i];
            list[count] = i;
            count += h[r + i] > 0.0;
        }
        for (int i = 0; i < count; ++i) root[i] = __builtin_sqrt(root[i]);
        for (int i = 0; i < count; ++i) {
            const T* p = X.row(r + list[i]);
            E* o = pack + (rows + i) * stride;
            const auto put = [&](i64 j, vd x) {
                const piece v = __builtin_convertvector(x * root[i], piece);
                std::memcpy(o + j, &v, sizeof v);
            };
            for (i64 j = 0; j < whole; j += VL) put(j, load(p + j) - load(mu + j));
            if (whole < d) put(d < VL ? 0 : d - VL, tail(p, d) - last);
            if (one) o[d] = (E)root[i];
        }
        rows += count;
        r += nr;
        if (rows < most && r < hi) continue;
        add_tiles(pack, columns, stride, rows, out, d + 1);
        rows = 0;
    }
}

template <class T>
void gram(const DenseRows<T>& X, i64 lo, i64 hi, const double* h, const double* mu, double* out, double* pack,
          bool one = true) {
    packed_gram(X, lo, hi, h, mu, out, pack, one);
}
template <class T>
void gram_single(const DenseRows<T>& X, i64 lo, i64 hi, const double* h, const double* mu, double* out, double* pack,
                 bool one = true) {
    packed_gram(X, lo, hi, h, mu, out, reinterpret_cast<float*>(pack), one);
}

template <class T>
void gram(const CsrRows<T>& X, i64 lo, i64 hi, const double* h, const double*, double* out, double*, bool = true) {
    const i64 d = X.d, order = d + 1;
    for (i64 r = lo; r < hi; ++r) {
        if ((r - lo) % 64 == 63) poll();
        if (h[r] == 0.0) continue;
        const i64 end = X.start[r + 1];
        for (i64 p = X.start[r]; p < end; ++p) {
            const double a = h[r] * (double)X.x[p];
            double* row = out + (i64)X.index[p] * order;
            for (i64 q = p; q < end; ++q) row[X.index[q]] += a * (double)X.x[q];
            row[d] += a;
        }
        out[d * order + d] += h[r];
    }
}

// Sparse rows have nothing to gain from it.
template <class T>
void gram_single(const CsrRows<T>& X, i64 lo, i64 hi, const double* h, const double* mu, double* out, double* scratch,
                 bool = true) {
    gram(X, lo, hi, h, mu, out, scratch);
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
