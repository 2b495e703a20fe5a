// Weighted Gram matrix  H = sum_i h_i (x_i - mu, 1)(x_i - mu, 1)'  of order D = d + 1.
//
// Dense: a few hundred rows with h > 0 at a time are packed as sqrt(h) (x - mu, 1), in panels of a few columns, and
// tiles of the upper triangle are kept in registers over the packed rows (Goto and van de Geijn, Anatomy of high-performance
// matrix multiplication, 2008). Subtracting mu while packing is the standardised view: it
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

// Columns of a panel, and rows of a tile: what a tile sums up, with a row of one panel, stays in registers, of which
// AVX-512 has 32 and the others 16.
template <class E>
constexpr int kPanel = (VL == 8 ? 1 : 3) * Lanes<E>::count;
template <class E>
constexpr int kTileRows = VL == 8              ? kPanel<E>
                          : kPanel<E> % 4 == 0 ? 4
                                               : 3;  // the rows of a tile lie in one panel
static_assert(kPanel<float> <= kMaxPanel && kPanel<double> % VL == 0);
static_assert(kPanel<float> % kTileRows<float> == 0 && kPanel<double> % kTileRows<double> == 0);

// out (I or fewer rows, `width` or fewer columns, rows `order` apart) += A' B over the packed rows of two panels.
template <class E, int I>
inline void tile(const E* a, const E* b, int rows, double* out, i64 order, i64 height, i64 width) {
    using vector = typename Lanes<E>::vector;
    constexpr int W = kPanel<E>, V = W / Lanes<E>::count, count = Lanes<E>::count;
    static_assert(V == 1 || V == 3);
    vector acc[I][V] = {};
    for (int r = 0; r < rows; ++r, a += W, b += W) {
        vector first = Lanes<E>::load(b);
        keep(first);
        if constexpr (V == 3) {
            vector second = Lanes<E>::load(b + count), third = Lanes<E>::load(b + 2 * count);
            keep(second);
            keep(third);
            for (int q = 0; q < I; ++q) {
                const vector s = a[q] - vector{};
                acc[q][0] += s * first;
                acc[q][V - 2] += s * second;
                acc[q][V - 1] += s * third;
            }
        } else {
            for (int q = 0; q < I; ++q) acc[q][0] += (a[q] - vector{}) * first;
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

// The tiles of the upper triangle, from panels of `panel` numbers. A group of panels stays in the second cache while
// the others pass by once; polls between two groups.
template <class E>
void add_tiles(const E* pack, i64 columns, i64 panel, int rows, double* out, i64 order) {
    constexpr int W = kPanel<E>, I = kTileRows<E>;
    constexpr i64 group = 8 * W;
    for (i64 first = 0; first < columns; first += group) {
        const i64 end = min64(columns, first + group);
        poll();
        for (i64 i = 0; i < end; i += I)
            for (i64 j = i > first ? i - i % W : first; j < end; j += W) {
                const auto one = [&](auto high) {
                    tile<E, high.value>(pack + i / W * panel + i % W, pack + j / W * panel, rows, out + i * order + j,
                                        order, columns - i, columns - j);
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

// The first address from p on at which a line of the cache begins.
template <class E>
inline E* aligned(E* p) {
    return reinterpret_cast<E*>((reinterpret_cast<std::uintptr_t>(p) + 63) & ~std::uintptr_t{63});
}

// The dense Gram with packed numbers of type E; without `one` the column of ones is left out.
template <class E, class T>
void packed_gram(const DenseRows<T>& X, i64 lo, i64 hi, const double* h, const double* mu, double* out, E* pack,
                 bool one) {
    typedef E piece __attribute__((vector_size(VL * sizeof(E))));
    constexpr int W = kPanel<E>;
    pack = aligned(pack);
    const i64 d = X.d, whole = d - d % VL, columns = one ? d + 1 : d;
    const int most = (int)min64(gram_rows<E>(d), hi - lo);
    const i64 panel = panel_rows(most) * W;
    for (i64 r = 0; r < most; ++r)
        for (i64 j = whole; j < d / W * W + W; ++j) pack[j / W * panel + r * W + j % W] = 0;
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
            const auto put = [&](i64 j, vd x) {
                const piece v = __builtin_convertvector(x * root[i], piece);
                std::memcpy(o + j / W * panel + j % W, &v, sizeof v);
            };
            for (i64 j = 0; j < whole; j += VL) put(j, load(p + j) - load(mu + j));
            if (whole < d) put(whole, load_first(p + whole, d - whole) - last);
            if (one) o[d / W * panel + d % W] = (E)root[i];
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

// Sparse rows have nothing to gain from it.
template <class T>
void gram_single(const CsrRows<T>& X, i64 lo, i64 hi, const double* h, const double* mu, double* out, double* scratch,
                 bool = true) {
    gram(X, lo, hi, h, mu, out, scratch);
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
