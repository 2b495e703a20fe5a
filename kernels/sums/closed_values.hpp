// Primal and dual value from the sums of a closing pass, without the rounding bound (src/linsep/problem/duality.py).
#pragma once
#include <cstdint>

namespace linsep {
namespace {  // one copy for each instruction set

struct ClosedValues {
    double primal, dual;
    double gap() const { return primal - dual; }
};

// Penalty l1 |w|_1 + l2/2 |w|^2. The dual point is made feasible for an intercept by scaling down the side with the
// larger mass, and without l2 by scaling down all of it until |v_j| <= l1.
inline ClosedValues closed_values(const double* sums, const double* theta, std::int64_t d, double l1, double l2,
                                  bool intercept) {
    const double plus = intercept && sums[3] > sums[4] ? sums[4] / sums[3] : 1.0;
    const double minus = intercept && sums[4] > sums[3] ? sums[3] / sums[4] : 1.0;
    double most = l1, squares = 0, penalty = 0;
    for (std::int64_t j = 0; j < d; ++j) {
        const double v = __builtin_fabs(plus * sums[8 + j] + minus * sums[8 + d + j]), over = v > l1 ? v - l1 : 0.0;
        most = v > most ? v : most;
        squares += over * over;
        penalty += l1 * __builtin_fabs(theta[j]) + 0.5 * l2 * theta[j] * theta[j];
    }
    const double conj = plus * sums[1] + minus * sums[2];
    return {sums[0] + penalty, l2 > 0.0 ? -conj - 0.5 * squares / l2 : -conj * (l1 / most)};
}

}  // namespace
}  // namespace linsep
