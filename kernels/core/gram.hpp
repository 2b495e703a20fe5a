// Weighted Gram matrix  H = sum_i h_i (x_i - mu, 1)(x_i - mu, 1)'  of order D = d + 1.
//
// Dense: a few hundred rows with h > 0 at a time are packed as sqrt(h) (x - mu, 1), in panels of a few columns, and
// tiles of the upper triangle are accumulated in registers over the packed rows (Goto and van de Geijn, Anatomy of
// high-performance matrix multiplication, 2008). Subtracting the mean mu while packing costs nothing and avoids the
// cancellation in H that columns with a large mean would cause.
// Single precision: sums of at most 256 rows are computed in float and added in double. Up to 1.7 times as fast, with
// errors up to 1e-7 of the diagonal.
// CSR: each pair of entries of a row adds to one triangle (mu must be 0); the caller adds the transpose.
#pragma once
#include "core/interrupt.hpp"
#include "core/rows.hpp"

namespace linsep::LINSEP_ARCH {

// Add the tiles of the upper triangle, from panels of `panel` numbers each (core/gram.cpp).
void add_tiles(const double* pack, i64 columns, i64 panel, int rows, double* out, i64 order);
void add_tiles(const float* pack, i64 columns, i64 panel, int rows, double* out, i64 order);

namespace {

// A vector of numbers of type E.
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

// Vectors per panel, columns per panel, and rows per tile. The accumulators of a tile and one row of a panel must fit
// in registers: 32 with AVX-512, 16 otherwise (without fused multiply-add, one more is needed for products).
constexpr int kVectors = VL == 8 ? 1 : VL == 4 ? 3 : 2;
template <class E>
constexpr int kPanel = kVectors * Lanes<E>::count;
template <class E>
constexpr int kTileRows = VL == 8 ? kPanel<E> : 4;
// Columns are padded with zeros within their panel to a multiple of this: whole vectors and whole tiles.
template <class E>
constexpr i64 kPadded = Lanes<E>::count < kTileRows<E> ? kTileRows<E> : Lanes<E>::count;
static_assert(kPanel<float> <= kMaxPanel && kPanel<float> % kPadded<float> == 0 &&
              kPanel<double> % kPadded<double> == 0);
static_assert(kPadded<float> % kTileRows<float> == 0 && kPadded<double> % kTileRows<double> == 0);
static_assert(kPadded<float> % VL == 0 && kPadded<double> % VL == 0);

// Round p up to the beginning of a cache line.
template <class E>
inline E* align(E* p) {
    return reinterpret_cast<E*>((reinterpret_cast<std::uintptr_t>(p) + 63) & ~std::uintptr_t{63});
}

// Dense Gram matrix with packed numbers of type E; without `one` the column of ones is omitted.
template <class E, class T>
void packed_gram(const DenseRows<T>& X, i64 lo, i64 hi, const double* h, const double* mu, double* out, E* pack,
                 bool one) {
    typedef E piece __attribute__((vector_size(VL * sizeof(E))));
    constexpr int W = kPanel<E>;
    pack = align(pack);
    const i64 d = X.d, whole = d - d % VL, columns = one ? d + 1 : d;
    const int most = (int)min64(gram_rows<E>(d), hi - lo);
    const i64 panel = panel_rows(most) * W, before = d / W, at = before * W;  // whole panels, and their columns
    const auto put = [](E* o, vd x) {
        const piece v = __builtin_convertvector(x, piece);
        std::memcpy(o, &v, sizeof v);
    };
    const i64 padded = (columns + kPadded<E> - 1) / kPadded<E> * kPadded<E>;
    for (i64 r = 0; r < most; ++r)
        for (i64 j = whole; j < padded; j += VL) put(pack + before * panel + r * W + (j - at), vd{});
    const vd last = load_first(mu + whole, d - whole);
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
            E* o = pack + (rows + i) * W;
            i64 j = 0;
            for (; j < at; j += W, o += panel)
                for (int c = 0; c < W; c += VL) put(o + c, (load(p + j + c) - load(mu + j + c)) * root[i]);
            for (; j < whole; j += VL) put(o + (j - at), (load(p + j) - load(mu + j)) * root[i]);
            if (whole < d) put(o + (whole - at), (load_first(p + whole, d - whole) - last) * root[i]);
            if (one) o[d - at] = (E)root[i];
        }
        rows += count;
        r += nr;
        if (rows < most && r < hi) continue;
        add_tiles(pack, columns, panel, rows, out, d + 1);
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

// For sparse rows single precision is not faster.
template <class T>
void gram_single(const CsrRows<T>& X, i64 lo, i64 hi, const double* h, const double* mu, double* out, double* scratch,
                 bool = true) {
    gram(X, lo, hi, h, mu, out, scratch);
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
