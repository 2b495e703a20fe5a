// Weighted Gram matrix  H = sum_i h_i (x_i - mu, 1)(x_i - mu, 1)'  of order D = d + 1.
//
// Dense: rows with h > 0 are packed as sqrt(h) (x - mu, 1) into panels of 8 columns, and 8 x 8 tiles of the upper
// triangle are kept in registers over the packed rows. Subtracting mu while packing is the standardised view: it
// costs nothing and spares H the cancellation that columns with a large mean bring.
// CSR: each pair of entries of a row adds to one triangle (mu must be 0); the caller adds the transpose.
#pragma once
#include "rows.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

constexpr int PW = kPanelWidth;      // a multiple of every VL
constexpr int MI = VL == 8 ? 8 : 4;  // rows of a tile: as many accumulators as registers allow
constexpr int NV = PW / VL;          // vectors in a panel row

// Tile H[i0 .. i0+MI, j0 .. j0+8) += A' B over `rows` packed rows.
inline void tile(const double* a, const double* b, int rows, double* out, i64 order, i64 i0, i64 j0) {
    vd acc[MI][NV] = {};
    for (int r = 0; r < rows; ++r) {
        vd bv[NV];
        for (int v = 0; v < NV; ++v) bv[v] = load(b + r * PW + v * VL);
        for (int q = 0; q < MI; ++q) {
            const vd s = splat(a[r * PW + q]);
            for (int v = 0; v < NV; ++v) acc[q][v] += s * bv[v];
        }
    }
    const i64 width = min64(PW, order - j0);
    for (int q = 0; q < MI && i0 + q < order; ++q) {
        double* o = out + (i0 + q) * order + j0;
        if (width == PW) {
            for (int v = 0; v < NV; ++v) store(o + v * VL, load(o + v * VL) + acc[q][v]);
        } else {
            double row[PW];
            for (int v = 0; v < NV; ++v) store(row + v * VL, acc[q][v]);
            for (i64 j = 0; j < width; ++j) o[j] += row[j];
        }
    }
}

inline void add_tiles(const double* pack, i64 panels, int stride, int rows, double* out, i64 order) {
    for (i64 pj = 0; pj < panels; ++pj)
        for (i64 pi = 0; pi <= pj; ++pi)
            for (int half = 0; half < PW; half += MI)
                tile(pack + pi * stride * PW + half, pack + pj * stride * PW, rows, out, order, pi * PW + half,
                     pj * PW);
}

template <class T>
void pack_row(const T* p, i64 d, double root, const double* mu, double* pack, int stride, int slot) {
    double* o = pack + (i64)slot * PW;
    const i64 panel = (i64)stride * PW;
    i64 j = 0;
    for (; j + PW <= d; j += PW, o += panel)
        for (int v = 0; v < PW; v += VL) store(o + v, (load(p + j + v) - load(mu + j + v)) * root);
    for (int c = 0; c < PW; ++c) o[c] = 0.0;
    for (int c = 0; j < d; ++j, ++c) o[c] = ((double)p[j] - mu[j]) * root;
    o[d % PW] = root;
}

template <class T>
void gram(const DenseRows<T>& X, i64 lo, i64 hi, const double* h, const double* mu, double* out, double* pack) {
    const i64 d = X.d, order = d + 1, panels = gram_panels(d);
    const int stride = gram_rows(d);
    int rows = 0;
    for (i64 r = lo; r < hi; ++r) {
        if (!(h[r] > 0.0)) continue;
        pack_row(X.row(r), d, __builtin_sqrt(h[r]), mu, pack, stride, rows);
        if (++rows == stride) {
            add_tiles(pack, panels, stride, rows, out, order);
            rows = 0;
        }
    }
    if (rows) add_tiles(pack, panels, stride, rows, out, order);
}

template <class T, class I>
void gram(const CsrRows<T, I>& X, i64 lo, i64 hi, const double* h, const double*, double* out, double*) {
    const i64 d = X.d, order = d + 1;
    for (i64 r = lo; r < hi; ++r) {
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

}  // namespace
}  // namespace linsep::LINSEP_ARCH
