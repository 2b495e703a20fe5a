// Objective, lower bound and rounding bound from the sums of a closing pass.
//
// A port of linsep/certificates/closing.py, which derives every term, for lam > 0 and no L1 penalty: for a table of a
// hundred rows, a dozen numpy operations on short vectors take longer than the fit. No solver calls it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace linsep {

struct Enclosure {
    double primal, bound, rounding;
};

inline double total(const double (&four)[4]) { return (four[0] + four[1]) + (four[2] + four[3]); }

// sums: [loss, conj+, conj-, mass+, mass-, magnitude, absolute, spread, v+ (d), v- (d)]
inline Enclosure enclosure(const double* sums, const double* w, int64_t d, double lam, bool intercept, double rows) {
    const double roundoff = 0x1p-53, underflow = 0x1p-1070, size = static_cast<double>(d);
    const double* side[2] = {sums + 8, sums + 8 + d};
    double scale[2] = {1.0, 1.0};  // of the dual variables of each side
    if (intercept && sums[3] > sums[4]) scale[0] = sums[4] / sums[3];
    if (intercept && sums[4] > sums[3]) scale[1] = sums[3] / sums[4];

    // Four independent sums hide the latency of the additions.
    double norms[4] = {}, squares[4] = {}, conj = scale[0] * sums[1] + scale[1] * sums[2];
    for (int64_t j = 0; j < d; ++j) {
        const double v = scale[0] * side[0][j] + scale[1] * side[1][j];
        norms[j % 4] += w[j] * w[j];
        squares[j % 4] += v * v;
    }
    const double norm = total(norms), square = total(squares);
    if (square > 0.0 && conj < 0.0) {  // scale the dual point by the best factor in [0, 1]
        const double kappa = std::min(1.0, std::max(0.0, -conj * lam / square));
        for (double& s : scale) s *= kappa;
        conj = scale[0] * sums[1] + scale[1] * sums[2];
    }
    double ats[4] = {}, offs[4] = {}, lengths[2][4] = {},
           alongs[2][4] = {};  // at = v/lam: |at|^2, |at - w|^2; |side|^2, side.at
    for (int64_t j = 0; j < d; ++j) {
        const double plus = scale[0] * side[0][j], minus = scale[1] * side[1][j], at = (plus + minus) / lam;
        ats[j % 4] += at * at;
        offs[j % 4] += (at - w[j]) * (at - w[j]);
        lengths[0][j % 4] += plus * plus;
        lengths[1][j % 4] += minus * minus;
        alongs[0][j % 4] += plus * at;
        alongs[1][j % 4] += minus * at;
    }
    const double believed = total(ats);
    const double penalty = 0.5 * lam * norm, conjugate = 0.5 * lam * believed;
    const double magnitude = sums[5], absolute = sums[6], spread = sums[7];
    const double chain = (rows + 40) * roundoff, error = chain * spread;  // of v, in norm
    double rounding = (size + 16) * roundoff * magnitude + chain * absolute;
    rounding += std::min(error * std::sqrt(believed), chain * magnitude + error * std::sqrt(total(offs)));
    rounding += (size + 16) * roundoff * (penalty + conjugate) + underflow * (size * (lam + 1.0 / lam) + 1.0);
    double moved = error;
    if (intercept) {  // the masses of the two sides are rounded too; either may be the larger one
        const double share = 2.0 * (rows + 41) * roundoff;
        double dearest = 0.0, farthest = 0.0;
        for (int s = 0; s < 2; ++s) {
            const double cost = share * (std::fabs(scale[s] * sums[1 + s]) + std::fabs(total(alongs[s])));
            const double length = share * std::sqrt(total(lengths[s]));
            if (!(cost <= dearest)) dearest = cost;  // a NaN becomes the maximum
            if (!(length <= farthest)) farthest = length;
        }
        rounding += dearest;
        moved += farthest;
    }
    rounding += 0.5 * moved * moved / lam;
    return {sums[0] + penalty, -conj - conjugate, rounding * (1.0 + 0x1p-10)};
}

}  // namespace linsep
