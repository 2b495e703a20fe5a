// Coordinate descent for  min_x  r'x + x'Sx/2 + l1 |x|_1  (r folded so that `slope` is the gradient of the quadratic at x).
// Every update costs one row of S, no row of data (covariance updates: Friedman, Hastie and Tibshirani 2010). Sweeps
// go over the nonzero coordinates until they settle, then over all, until a full sweep moves nothing by more than tol.
#pragma once
#include "simd.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

// One coordinate to its minimum; returns its move in units of the objective's root, |dx| sqrt(S_jj).
inline double settle_coordinate(std::int64_t k, const double* S, double l1, std::int64_t j, double* x, double* slope) {
    const double curve = S[j * k + j];
    if (!(curve > 0.0)) return 0.0;
    const double at = curve * x[j] - slope[j];
    const double size = __builtin_fabs(at) - l1;
    const double to = size > 0.0 ? (at > 0.0 ? size : -size) / curve : 0.0;
    const double move = to - x[j];
    if (move == 0.0) return 0.0;
    x[j] = to;
    const double* row = S + j * k;
    std::int64_t i = 0;
    const vd step = splat(move);
    for (; i + VL <= k; i += VL) store(slope + i, load(slope + i) + step * load(row + i));
    for (; i < k; ++i) slope[i] += move * row[i];
    return __builtin_fabs(move) * __builtin_sqrt(curve);
}

// x and its slope are moved; returns the sweeps over all coordinates that were made, negative if the limit ended it.
inline std::int64_t quadratic_cd(std::int64_t k, const double* S, double l1, double tol, std::int64_t max_sweeps,
                                 double* x, double* slope) {
    std::int64_t full = 0;
    for (std::int64_t sweep = 0; sweep < max_sweeps;) {
        double most = 0.0;
        for (std::int64_t j = 0; j < k; ++j) {
            const double move = settle_coordinate(k, S, l1, j, x, slope);
            most = move > most ? move : most;
        }
        ++full, ++sweep;
        if (most <= tol) return full;
        for (; sweep < max_sweeps; ++sweep) {
            double inner = 0.0;
            for (std::int64_t j = 0; j < k; ++j)
                if (x[j] != 0.0) {
                    const double move = settle_coordinate(k, S, l1, j, x, slope);
                    inner = move > inner ? move : inner;
                }
            if (inner <= 0.3 * tol) break;
        }
    }
    return -full;
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
