// Blocked Cholesky factorisation, for larger orders than core/cholesky.hpp: rows of U are computed in blocks, and the
// update of the trailing matrix by a block uses the tiles of core/gram.hpp. No columns are dropped.
#pragma once
#include "core/cholesky.hpp"
#include "core/gram.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

constexpr i64 kBlockRows = 64;
inline i64 block_pack(i64 n) { return (n + kMaxPanel) * panel_rows(kBlockRows); }

// On entry U holds the upper triangle of A, on return the factor; pack is scratch of block_pack(n) doubles.
inline void factor_in_blocks(Cholesky& chol, double* pack) {
    const i64 n = chol.n;
    double *U = chol.U, *scale = chol.scale;
    for (i64 i = 0; i < n; ++i) scale[i] = U[i * n + i] > 0.0 ? 1.0 / __builtin_sqrt(U[i * n + i]) : 0.0;
    for (i64 i = 0; i < n; ++i) {  // negated, because add_tiles can only add
        for (i64 j = i + 1; j < n; ++j) U[i * n + j] *= -scale[i] * scale[j];
        U[i * n + i] = -1.0;
    }
    chol.least = 1.0;
    for (i64 k0 = 0; k0 < n; k0 += kBlockRows) {
        const i64 k1 = min64(n, k0 + kBlockRows);
        for (i64 k = k0; k < k1; ++k)
            for (i64 j = k; j < n; ++j) U[k * n + j] = -U[k * n + j];
        for (i64 k = k0; k < k1; ++k) {
            double* row = U + k * n;
            if (row[k] < chol.least) chol.least = row[k];
            row[k] = __builtin_sqrt(row[k] > 1e-15 ? row[k] : 1e-15);
            for (i64 j = k + 1; j < n; ++j) row[j] /= row[k];
            for (i64 i = k + 1; i < k1; ++i) subtract_n(row[i], row + i, U + i * n + i, n - i);
        }
        const int rows = (int)(k1 - k0);
        const i64 left = n - k1, panel = panel_rows(kBlockRows) * kPanel<double>;
        constexpr i64 W = kPanel<double>;
        for (int r = 0; r < rows; ++r)
            for (i64 j = 0; j < left / W * W + W; ++j)
                pack[j / W * panel + r * W + j % W] = j < left ? U[(k0 + r) * n + k1 + j] : 0.0;
        add_tiles(pack, left, panel, rows, U + k1 * n + k1, n);
    }
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
