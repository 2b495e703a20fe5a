// Coordinate descent for a quadratic with an L1 penalty: min_x  r'x + x'Sx/2 + l1 |x|_1, given `slope`, the gradient of
// the quadratic part at x.
//
// Every update reads one row of S and no data (covariance updates: Friedman, Hastie and Tibshirani 2010). Sweeps visit
// the nonzero coordinates until they converge, then all. Linear solves on the support make the solution exact
// (feature-sign search: Lee, Battle, Raina and Ng 2007): if the solution for the current signs would change some of
// them, the step ends at the minimum along the line to it.
#pragma once
#include "core/arena.hpp"
#include "core/cholesky.hpp"
#include "core/interrupt.hpp"
#include "l1/line_minimum.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

// slope += move * row j of S
inline void follow(std::int64_t k, const double* S, std::int64_t j, double move, double* slope) {
    const double* row = S + j * k;
    std::int64_t i = 0;
    const vd step = splat(move);
    for (; i + VL <= k; i += VL) store(slope + i, load(slope + i) + step * load(row + i));
    for (; i < k; ++i) slope[i] += move * row[i];
}

// Minimise over one coordinate; return its change |dx| sqrt(S_jj), in units of the square root of the objective.
inline double settle_coordinate(std::int64_t k, const double* S, double l1, std::int64_t j, double* x, double* slope) {
    const double curve = S[j * k + j];
    if (!(curve > 0.0)) return 0.0;
    const double at = curve * x[j] - slope[j];
    const double size = __builtin_fabs(at) - l1;
    const double to = size > 0.0 ? (at > 0.0 ? size : -size) / curve : 0.0;
    const double move = to - x[j];
    if (move == 0.0) return 0.0;
    x[j] = to;
    follow(k, S, j, move, slope);
    return __builtin_fabs(move) * __builtin_sqrt(curve);
}

// Update x and slope until a full sweep changes no coordinate by more than tol; return the number of full sweeps,
// negated if the limit was reached.
inline std::int64_t quadratic_cd(std::int64_t k, const double* S, double l1, double tol, std::int64_t max_sweeps,
                                 double* x, double* slope) {
    std::int64_t full = 0;
    for (std::int64_t sweep = 0; sweep < max_sweeps;) {
        poll();
        double most = 0.0;
        for (std::int64_t j = 0; j < k; ++j) {
            const double move = settle_coordinate(k, S, l1, j, x, slope);
            most = move > most ? move : most;
        }
        ++full, ++sweep;
        if (most <= tol) return full;
        for (; sweep < max_sweeps; ++sweep) {
            poll();
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

constexpr int kQuadraticRounds = 30;  // rounds of descent and solves
constexpr int kQuadraticSweeps = 6;   // sweeps over the support in a round
constexpr int kSupports = 30;         // solves in a round, each on fewer features or with other signs

// Minimise the same problem until no coordinate violates its optimality condition by more than `enough`.
struct SparseQuadratic {
    i64 k;
    double *S, *x, *slope;
    double *part, *rhs, *move, *spare, *lengths;
    i64 *on, *who;
    double l1;
    Cholesky chol;

    SparseQuadratic(i64 size, double penalty, Arena* arena) : k(size), l1(penalty) {
        S = arena->take(k, k), part = arena->take(k, k), chol.U = arena->take(k, k);
        chol.scale = arena->take(k), x = arena->take(k), slope = arena->take(k);
        rhs = arena->take(k), move = arena->take(k), spare = arena->take(k), lengths = arena->take(k);
        on = arena->take_ids(k), who = arena->take_ids(k);
    }

    double settle(i64 j) {
        const double found = breach_of(x[j], slope[j], l1);
        if (found == 0.0 || !(S[j * k + j] > 0.0)) return 0.0;
        settle_coordinate(k, S, l1, j, x, slope);
        return found;
    }

    void minimise(double enough) {
        for (int round = 0; round < kQuadraticRounds; ++round) {
            poll();
            double most = 0.0;
            for (i64 j = 0; j < k; ++j) most = larger(most, settle(j));
            if (most <= enough) return;
            bool settled = false;
            for (int sweep = 0; sweep < kQuadraticSweeps && !settled; ++sweep) {
                double inner = 0.0;
                for (i64 j = 0; j < k; ++j)
                    if (x[j] != 0.0) inner = larger(inner, settle(j));
                settled = inner <= 0.3 * enough;
            }
            if (!settled) on_support();
        }
    }

    // Minimise over the vectors that are zero wherever x is.
    void on_support() {
        for (int turn = 0; turn < kSupports; ++turn) {
            poll();
            i64 m = 0;
            for (i64 j = 0; j < k; ++j)
                if (x[j] != 0.0) on[m++] = j;
            if (m == 0) return;
            for (i64 c = 0; c < m; ++c) {
                const i64 j = on[c];
                rhs[c] = -(slope[j] + (x[j] > 0.0 ? l1 : -l1));
                for (i64 e = 0; e < m; ++e) part[c * m + e] = S[j * k + on[e]];
            }
            chol.n = m;
            chol.factor(part, true);
            chol.solve_refined(part, rhs, move, spare);
            if (!advance(m)) return;
        }
    }

    // Line search along `move`, the Newton step on the support; return whether a sign has changed, which needs another.
    bool advance(i64 m) {
        const double fall = dot_n(rhs, move, m);  // equals the curvature along a Newton step
        if (!(fall > 0.0) || !(fall - fall == 0.0)) return false;
        Kinks kinks{lengths, who};
        for (i64 c = 0; c < m; ++c)
            if (move[c] * x[on[c]] < 0.0) kinks.add(-x[on[c]] / move[c], c);
        const Landing end = minimum_along(kinks, -fall, fall, [this](i64 c) { return l1 * __builtin_fabs(move[c]); });
        for (i64 c = 0; c < m; ++c) {
            const double to = c == end.who ? 0.0 : x[on[c]] + end.length * move[c];
            follow(k, S, on[c], to - x[on[c]], slope);
            x[on[c]] = to;
        }
        return end.crossed;
    }
};

}  // namespace
}  // namespace linsep::LINSEP_ARCH
