// Cache-blocked products of a chunk of dense rows with many columns, in precision E:
//   scores   Z = X W + b'  (rows, K)        add   G += A'X  (K, d),  G in double precision
// X is converted to E one chunk at a time, W once, both in panels of kPanel columns. A tile of kTile rows (or classes)
// by kPanel columns stays in registers. Panels begin in different cache sets. G is stored tile by tile, in the order in
// which a chunk adds to it. In single precision, sums for G run over at most kPanelRows rows before they are added in
// double precision.
// Reference: Goto and van de Geijn, Anatomy of high-performance matrix multiplication, 2008.
#pragma once
#include "core/gram.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

template <class E>
struct Panels {
    static constexpr int kLanes = Lanes<E>::count, kVectors = VL > 4 ? 1 : 2, kPanel = kVectors * kLanes;
    static constexpr int kTile = VL == 2 ? 4 : VL == 4 ? 6 : 12;
    static constexpr i64 kDepth = 256;           // features of a panel of W that fit in the L1 cache
    static constexpr i64 kClasses = 16 * kTile;  // classes whose columns of A and sums fit in the L2 cache
    using Vector = typename Lanes<E>::vector;

    i64 d, k, K, stride;  // K and stride: classes and features, rounded up to whole panels
    E *x, *turned;        // panels (kPanelHeight, kPanel) of a chunk; panels (d, kPanel) of three W
    double* G;            // tiles (kTile, kPanel)
    E* Z;                 // (kPanelRows, K), for the caller

    Panels(i64 features, i64 classes, double* scratch)
        : d(features), k(classes), K(panel_columns(classes)), stride(panel_columns(features)) {
        x = reinterpret_cast<E*>(scratch);
        scratch += kPanelHeight * stride;
        turned = reinterpret_cast<E*>(scratch);
        G = scratch + 3 * (d + 1) * K;
        Z = reinterpret_cast<E*>(G + (K + kPanelTile) * stride);
        for (i64 j = 0; j < kPanelRows * K + 64; ++j) Z[j] = E(0);  // tiles read past its last column
    }
    void clear() {
        for (i64 j = 0; j < (k + kTile - 1) / kTile * kTile * stride; ++j) G[j] = 0.0;
    }
    // Tile of G that holds the sums of the classes [c, c + kTile) and the columns [j, j + kPanel).
    double* tile(i64 c, i64 j) const {
        const i64 first = c / kClasses * kClasses, tiles = (min64(kClasses, k - first) + kTile - 1) / kTile;
        return G + first * stride + (j / kPanel * tiles + (c - first) / kTile) * kTile * kPanel;
    }
    double sum(i64 c, i64 j) const { return tile(c, j)[c % kTile * kPanel + j % kPanel]; }
    // Store W (d + 1, padded_classes) in slot `which` of three: panels (d, kPanel), followed by the intercepts.
    void take(int which, const double* W) {
        const i64 from = padded_classes(k);
        E* to = turned + which * (d + 1) * K;
        for (i64 c = 0; c < K; c += kPanel)
            for (i64 j = 0; j < d; ++j)
                for (int q = 0; q < kPanel; ++q) *to++ = c + q < from ? (E)W[j * from + c + q] : E(0);
        for (i64 c = 0; c < K; ++c) *to++ = c < from ? (E)W[d * from + c] : E(0);
    }
    template <class T>
    void open(const DenseRows<T>& X, i64 r, int nr) const {
        for (int i = 0; i < nr; ++i) {
            const T* p = X.row(r + i);
            E* to = x + i * kPanel;
            i64 j = 0;
            for (; j + kPanel <= d; j += kPanel, to += kPanelHeight * kPanel)
                for (int q = 0; q < kPanel; ++q) to[q] = (E)p[j + q];
            for (int q = 0; j < d && q < kPanel; ++q) to[q] = j + q < d ? (E)p[j + q] : E(0);
        }
        for (int i = nr; i % kTile; ++i)
            for (i64 j = 0; j < d; j += kPanel)
                for (int q = 0; q < kPanel; ++q) x[j * kPanelHeight + i * kPanel + q] = E(0);
    }
    // Pack rows stored in planes, one plane of `plane_rows` rows for each column.
    void open_planes(const double* planes, i64 plane_rows, int nr) const {
        for (i64 j = 0; j < d; ++j) {
            E* to = x + j / kPanel * kPanel * kPanelHeight + j % kPanel;
            for (int i = 0; i < nr; ++i) to[i * kPanel] = (E)planes[j * plane_rows + i];
        }
    }
    // to (rows in whole tiles, K) = scores by the W in slot `which`
    void scores(int which, int nr, E* to) const {
        const E* W = turned + which * (d + 1) * K;
        const E* b = W + d * K;
        for (i64 lo = 0; lo == 0 || lo < d; lo += kDepth) {
            const i64 depth = min64(kDepth, d - lo);
            for (i64 c = 0; c < k; c += kPanel) {
                poll();
                for (int i = 0; i < nr; i += kTile) {
                    const E *p = x + lo * kPanelHeight + i * kPanel, *w = W + c * d + lo * kPanel;
                    const E* first = lo ? nullptr : b + c;
                    k - c > kLanes ? score_tile<kVectors>(p, w, depth, first, to + i * K + c)
                                   : score_tile<1>(p, w, depth, first, to + i * K + c);
                }
            }
        }
    }
    // G += A'X with A (rows, K); for a symmetric G only the tiles that touch its lower triangle
    void add(const E* A, int nr, bool symmetric = false) const {
        for (i64 first = 0; first < k; first += kClasses)
            for (i64 j = 0; j < (symmetric ? min64(d, first + kClasses) : d); j += kPanel) {
                poll();
                for (i64 c = first; c < min64(k, first + kClasses); c += kTile)
                    add_tile(A + c, x + j * kPanelHeight, nr, tile(c, j));
            }
    }
    // out (d + 1, padded_classes) += G'
    void close(double* out) const {
        const i64 to = padded_classes(k);
        for (i64 j = 0; j < d; ++j)
            for (i64 c = 0; c < k; ++c) out[j * to + c] += sum(c, j);
    }

  private:
    // A tile of kTile rows by V vectors of a panel.
    template <int V>
    [[gnu::always_inline]] void score_tile(const E* a, const E* w, i64 depth, const E* b, E* Z) const {
        Vector acc[kTile][V];
        for (int q = 0; q < kTile; ++q)
            for (int v = 0; v < V; ++v) acc[q][v] = Lanes<E>::load(b ? b + v * kLanes : Z + q * K + v * kLanes);
        for (i64 at = 0; at < depth; at += kPanel, a += kPanelHeight * kPanel)
            for (i64 j = 0; j < min64(kPanel, depth - at); ++j, w += kPanel) {
                Vector wv[V];
                for (int v = 0; v < V; ++v) wv[v] = Lanes<E>::load(w + v * kLanes);
                for (int q = 0; q < kTile; ++q) {
                    const Vector s = a[q * kPanel + j] - Vector{};
                    for (int v = 0; v < V; ++v) acc[q][v] += s * wv[v];
                }
            }
        for (int q = 0; q < kTile; ++q)
            for (int v = 0; v < V; ++v) std::memcpy(Z + q * K + v * kLanes, &acc[q][v], sizeof(Vector));
    }
    [[gnu::always_inline]] void add_tile(const E* a, const E* p, int nr, double* g) const {
        Vector acc[kTile][kVectors] = {};
        for (int j = 0; j < kTile * kPanel; j += 8) __builtin_prefetch(g + j, 1, 3);
        for (int i = 0; i < nr; ++i, a += K, p += kPanel) {
            Vector xv[kVectors];
            for (int v = 0; v < kVectors; ++v) xv[v] = Lanes<E>::load(p + v * kLanes);
            for (int q = 0; q < kTile; ++q) {
                const Vector s = a[q] - Vector{};
                for (int v = 0; v < kVectors; ++v) acc[q][v] += s * xv[v];
            }
        }
        for (int q = 0; q < kTile; ++q)
            for (int v = 0; v < kVectors; ++v) {
                Vector sum = acc[q][v];
                keep(sum);  // else `acc` is kept in memory, because halves of it are read here
                E row[kLanes];
                std::memcpy(row, &sum, sizeof row);
                double* to = g + q * kPanel + v * kLanes;
                for (int j = 0; j < kLanes; j += VL) store(to + j, load(to + j) + load(row + j));
            }
    }
};

}  // namespace
}  // namespace linsep::LINSEP_ARCH
