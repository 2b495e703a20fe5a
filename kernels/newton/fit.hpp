// A complete fit in one call, for problems so small that Python would take longer between two passes than the passes.
//
// Newton's method on  P(theta) = lam/2 |w|^2 + sum s l(m)  in the centred coordinates (x - mu, 1): gradient sweep,
// Hessian as a Gram matrix, Cholesky factor of the Jacobi-scaled Hessian with one step of refinement, unit step. If P
// would rise, an exact line search on stored scores finds the step size (which makes the method finite for piecewise
// quadratic losses, Keerthi and DeCoste 2005); if P still falls steeply at the end of a step, the step is lengthened.
// Stops on the duality gap of the closing pass at the linearised dual point. src/linsep/solvers/newton/solve.py is the
// same method over many blocks.
//
// The Hessian is summed in single precision as long as its error, 1e-7 of the diagonal, is small against the smallest
// pivot and does not affect the gap. Polishing continues with the last factor (chord steps, one sweep each).
#pragma once
#include "core/any_rows.hpp"
#include "core/arena.hpp"
#include "core/cholesky.hpp"
#include "core/interrupt.hpp"
#include "sums/closed_values.hpp"
#include "sums/sweep.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

// Mean mu of the rows, weighted by their curvatures h, so that outliers with zero curvature do not count; 0 for sparse
// rows. Returns the sum of h.
inline double centre(const AnyRows& X, const TwoParts& rows, const double* h, bool intercept, double* mu,
                     double* other) {
    for (i64 j = 0; j < X.d; ++j) mu[j] = 0.0;
    if (!intercept || !X.dense) return 0.0;
    rows.sum(mu, other, X.d + 1, [&](i64 lo, i64 hi, double* out, int) { X.combine(lo, hi, h, out); });
    const double sum = mu[X.d];
    for (i64 j = 0; j < X.d; ++j) mu[j] /= sum > 0.0 ? sum : 1.0;
    return sum;
}

// H = lam I_w + sum h (x - mu, 1)(x - mu, 1)', both triangles, where mu is the mean weighted by h: the centred columns
// are orthogonal to the column of ones. In single precision unless `exact`. mu is an array of d + 1 numbers; H2 and
// pack (scratch of the Gram kernel) have one array for each half of the rows.
inline void hessian(const AnyRows& X, const TwoParts& rows, const double* h, double lam, bool intercept, double* mu,
                    double* const (&H2)[2], double* const (&pack)[2], bool exact) {
    const i64 d = X.d, order = d + 1;
    double* H = H2[0];
    const double sum = centre(X, rows, h, intercept, mu, H2[1]);
    rows.sum(H, H2[1], order * order, [&](i64 lo, i64 hi, double* out, int part) {
        if (exact)
            X.gram(lo, hi, h, mu, out, pack[part], !X.dense);
        else
            X.gram_single(lo, hi, h, mu, out, pack[part], !X.dense);
    });
    if (X.dense) H[d * order + d] = sum;
    for (i64 i = 0; i < order; ++i)
        for (i64 j = i + 1; j < order; ++j) {
            // the dense kernel fills the upper triangle, the sparse one either triangle, and the other entry is 0
            const double both = X.dense ? H[i * order + j] : H[i * order + j] + H[j * order + i];
            H[i * order + j] = H[j * order + i] = both;
        }
    for (i64 j = 0; j < d; ++j) {
        // A constant column duplicates the intercept: after centring, only rounding errors remain of it.
        if (H[j * order + j] <= 1e-24 * mu[j] * mu[j] * H[d * order + d])
            for (i64 i = 0; i < order; ++i) H[j * order + i] = H[i * order + j] = 0.0;
        H[j * order + j] += lam;
    }
    if (!intercept)
        for (i64 j = 0; j < order; ++j) H[j * order + d] = H[d * order + j] = 0.0;
}
inline void hessian(const AnyRows& X, const double* h, double lam, bool intercept, double* mu, double* H, double* pack,
                    bool exact = true) {
    hessian(X, TwoParts{X.n, X.n}, h, lam, intercept, mu, {H, nullptr}, {pack, nullptr}, exact);
}

constexpr i64 kSingleFrom = 12;  // number of columns from which single precision is faster

struct NewtonFit {
    const AnyRows& X;
    Targets t;
    LossSpec spec;
    NewtonJob job;
    i64 n, d, order;
    TwoParts rows;
    double *theta, *trial, *delta, *g, *rhs, *res, *mu, *h, *z, *dz, *sums, *H, *other, *pack[2];
    Cholesky chol;
    double P = 0, closed = 0;
    double blend = 0;  // 1: secant curvatures, for a few steps after the Hessian was singular
    int hold = 1, held = 0, shorts = 0;
    bool lost = false;  // the last direction ignores a part of the gradient along which there is no curvature
    bool exact;         // Hessians in double precision from now on
    // Decrement, relative to P, below which a closing pass is worthwhile: the relative gap after a step is about the
    // square of its relative decrement.
    double near;
    NewtonReport report{};

    NewtonFit(const AnyRows& all, Targets targets, LossSpec s, NewtonJob j, double* th, Arena* arena)
        : X(all),
          t(targets),
          spec(s),
          job(j),
          n(all.n),
          d(all.d),
          order(all.d + 1),
          rows(halves(all, j.helper)),
          theta(th) {
        trial = arena->take(order + 8);
        delta = arena->take(order + 8);
        g = arena->take(order + 8);
        rhs = arena->take(order + 8);
        res = arena->take(order + 8);
        mu = arena->take(order + 8);
        chol.scale = arena->take(order + 8);
        h = arena->take(n + 8);
        z = arena->take(n + 8);
        dz = arena->take(n + 8);
        sums = arena->take(2 * order + 8);
        H = arena->take(order, order);
        other = rows.two() ? arena->take(order, order) : nullptr;
        chol.U = arena->take(order, order);
        chol.n = order;
        pack[0] = arena->take(gram_scratch(X.rows));
        pack[1] = rows.two() ? arena->take(gram_scratch(X.rows)) : nullptr;
        exact = !X.dense || job.lam == 0.0 || d < kSingleFrom;
        near = __builtin_sqrt(10.0 * job.tol) < 0.3 ? __builtin_sqrt(10.0 * job.tol) : 0.3;
    }

    double penalty(const double* w) const { return 0.5 * job.lam * dot_n(w, w, d); }

    void value_and_gradient(const double* at) {
        rows.sum(g, sums, order + 1,
                 [&](i64 lo, i64 hi, double* out, int) { X.sweep(lo, hi, t, spec, at, out, h, true, blend); });
        ++report.sweeps;
    }

    // rhs = -gradient in the centred coordinates, where b = c - mu.w
    void descend() {
        const double gb = job.intercept ? g[1 + d] : 0.0;
        for (i64 j = 0; j < d; ++j) rhs[j] = -(g[1 + j] + job.lam * theta[j] - mu[j] * gb);
        rhs[d] = -gb;
    }

    // delta = -H^-1 gradient; returns the squared Newton decrement.
    double direction() {
        for (;;) {
            hessian(X, rows, h, job.lam, job.intercept, mu, {H, other}, pack, exact);
            ++report.grams;
            descend();
            chol.factor(H, job.lam == 0.0);
            chol.solve_refined(H, rhs, delta, res);
            const double decrement = dot_n(rhs, delta, order);
            if (exact || (chol.least > 1e-4 && decrement - decrement == 0.0 && !blurred(decrement))) break;
            exact = true;
        }
        double most = 0, unseen = 0;
        for (i64 i = 0; i < order; ++i) {
            const double a = __builtin_fabs(rhs[i]);
            if (a > most) most = a;
            if (chol.scale[i] == 0.0 && a > unseen) unseen = a;
        }
        lost = unseen > 1e-12 * most;
        const double decrement = dot_n(rhs, delta, order);
        if (job.intercept) delta[d] -= dot_n(mu, delta, d);
        return decrement;
    }

    // Return whether single precision would affect the gap: it leaves a residual r of about
    // 2e-7 diag(H)^1/2 |diag(H)^1/2 delta| in the Newton equations, which adds |r|^2/(2 lam) to the gap.
    bool blurred(double decrement) const {
        if (!(decrement <= near * P)) return false;
        double trace = 0, length = 0;
        for (i64 i = 0; i < d; ++i) {
            const double a = H[i * order + i];
            trace += a;
            length += a * delta[i] * delta[i];
        }
        return 4e-14 * trace * length > 0.1 * job.tol * job.lam * P;
    }

    double slope_at(double step) {
        Chunk c;
        double s = job.lam * (dot_n(theta, delta, d) + step * dot_n(delta, delta, d));
        const LossOps loss = ops(spec.id);
        for (i64 r = 0; r < n; r += kMaxChunk) {
            const int nr = (int)min64(kMaxChunk, n - r);
            for (int i = 0; i < nr; ++i) c.m[i] = z[r + i] + step * dz[r + i];
            margins(c, t, r, nr);
            loss.at(padded(nr), spec.shape, c.m, c.value, c.slope, c.curvature);
            for (int i = 0; i < nr; ++i) s += c.weight[i] * t.sign[r + i] * c.slope[i] * dz[r + i];
        }
        return s;
    }
    // Root of the derivative along the step in (0, 1), by regula falsi (Illinois variant) safeguarded by bisection.
    double exact_step() {
        X.dots(0, n, theta, z);
        X.dots(0, n, delta, dz);
        double a = 0, b = 1, fa = slope_at(0), fb = slope_at(1);
        if (!(fa < 0)) return 0.0;
        if (!(fb > 0)) return fb <= 0 ? 1.0 : 0.5;
        for (int k = 0; k < 60 && b - a > 1e-12 * b; ++k) {
            double s = k % 3 == 2 ? 0.5 * (a + b) : (a * fb - b * fa) / (fb - fa);
            if (!(s > a && s < b)) s = 0.5 * (a + b);
            poll();
            const double f = slope_at(s);
            if (f <= 0) {
                a = s;
                fa = f;
                fb *= 0.5;
            } else {
                b = s;
                fb = f;
                fa *= 0.5;
            }
            if (f == 0) return s;
        }
        return a > 0 ? a : b;
    }

    double smallest_margin() {
        double least = 1e300;
        X.dots(0, n, theta, z);
        for (i64 i = 0; i < n; ++i) {
            const double m = t.sign[i] * z[i] + (t.offset ? t.offset[i] : 0.0);
            if ((!t.weight || t.weight[i] > 0.0) && !(m >= least)) least = m;
        }
        return least;
    }

    // Use secant curvatures from the point `at` on, for `hold` steps; `hold` doubles each time.
    void to_secant(const double* at) {
        blend = 1.0;
        held = 0;
        value_and_gradient(at);
    }

    void to_newton() {
        blend = 0.0;
        hold = hold < 16 ? 2 * hold : 16;
        value_and_gradient(theta);
    }

    double try_step(double length) {
        for (i64 j = 0; j < order; ++j) trial[j] = theta[j] + length * delta[j];
        value_and_gradient(trial);
        return g[0] + penalty(trial);
    }

    // Take one step along delta: of size 1, larger if P still falls steeply there, or by exact line search if P would
    // rise. Return false if P does not decrease.
    bool advance(double decrement, bool tiny, double* length) {
        double next = try_step(*length = 1.0);
        if (!tiny && !(next <= P - 1e-4 * decrement)) {
            next = try_step(*length = exact_step());
            if (!(next < P)) return false;
        } else if (decrement > 1e-2 * P && blend == 0.0) {
            // Derivative at the end of the step relative to that at its start: its secant vanishes at 1/(1 - share).
            const double slope = dot_n(g + 1, delta, order) + job.lam * dot_n(trial, delta, d);
            const double share = -slope / decrement;
            if (share > 0.2) {
                const double far = share < 0.75 ? 1.0 / (1.0 - share) : 4.0, near_by = next;
                next = try_step(*length = far);
                if (!(next < near_by)) next = try_step(*length = 1.0);
            }
        }
        for (i64 j = 0; j < order; ++j) theta[j] = trial[j];
        P = next;
        return true;
    }

    // Take chord steps with the last factor until they reach rounding level; return false if they do not shrink fast
    // enough. The first step shows, without a closing pass, whether the gap can be below tol (`near_enough`).
    bool polish(bool* near_enough) {
        double last = 0;
        for (int k = 0; k < 8; ++k) {
            descend();
            chol.solve(rhs, delta);
            const double decrement = dot_n(rhs, delta, order);
            *near_enough = k > 0 || !(decrement > job.tol * P);
            if (!*near_enough) return false;
            if (!(decrement > 0.0) || decrement <= 1e-20 * P) return true;
            if (k > 0 && !(decrement <= 0.01 * last)) return decrement <= 1e-16 * P;
            last = decrement;
            if (job.intercept) delta[d] -= dot_n(mu, delta, d);
            const double next = try_step(1.0);
            if (!(next <= P + 1e-15 * P)) {
                value_and_gradient(theta);
                return decrement <= 1e-16 * P;
            }
            for (i64 j = 0; j < order; ++j) theta[j] = trial[j];
            P = next;
            if (decrement <= 1e-17 * P) return true;
        }
        return false;
    }

    bool closes(const double* base, const double* step, const double* at, double* out) {
        rows.sum(out, sums, 8 + 2 * d, [&](i64 lo, i64 hi, double* to, int part) {
            X.closing(lo, hi, t, spec, base, step, at, nullptr, to, part ? rhs : res, nullptr);
        });
        ++report.sweeps;
        const ClosedValues found = closed_values(out, at, d, 0.0, job.lam, job.intercept);
        report.dual = found.dual;
        closed = found.primal;
        return found.gap() <= job.tol * closed;
    }

    // Run the closing pass instead of the sweep at the end of the step; if the gap is at most tol, move theta there.
    bool ends_here(const double* base, const double* step, double* out) {
        for (i64 j = 0; j < order; ++j) trial[j] = theta[j] + delta[j];
        if (!closes(base, step, trial, out)) return false;
        for (i64 j = 0; j < order; ++j) theta[j] = trial[j];
        P = closed;
        return true;
    }

    // Return whether short steps are so expensive that an interior point method should continue
    // (src/linsep/solvers/interior/quadratic_hinge.py).
    bool stalled() const {
        return spec.id == LossId::squared_hinge && X.dense && job.lam > 0.0 && n * d * (d + 8) > 4'000'000;
    }

    // status: 0 step limit or many short steps, 1 gap <= tol, 2 working precision reached, 3 separable (theta
    // separates), 4 not finite
    NewtonReport run(double* base, double* step, double* closing_out) {
        const bool bent = spec.id == LossId::huberised_hinge || spec.id == LossId::huber;
        const bool unbounded = job.lam == 0.0 && (spec.id == LossId::logistic || spec.id == LossId::exponential);
        value_and_gradient(theta);
        P = g[0] + penalty(theta);
        bool certified = false, settled = false;  // settled: even the secant steps are tiny
        for (report.steps = 0; report.steps < job.max_steps; ++report.steps) {
            if (!(P - P == 0.0)) return finish(4);
            const double decrement = direction();
            if (!(decrement - decrement == 0.0)) return finish(4);
            if (bent && lost && blend == 0.0 && !settled) {
                to_secant(theta);
                continue;
            }
            for (i64 j = 0; j < order; ++j) {
                base[j] = theta[j];
                step[j] = delta[j];
            }
            const bool tiny = decrement <= 1e-13 * (P > 0 ? P : 1e-300);
            const bool close_by = job.lam > 0.0 && blend == 0.0 && decrement <= near * P;
            if (close_by && !job.polish && ends_here(base, step, closing_out)) return finish(1);
            double length;
            if (!advance(decrement, tiny, &length)) {
                if (!bent || blend > 0.0 || settled) return finish(certified ? 1 : 2);
                to_secant(theta);
                continue;
            }
            if (unbounded && smallest_margin() > 0.0) return finish(3);
            shorts += length < 0.3;
            if (shorts == 6 && stalled()) return finish(0);
            if (blend > 0.0) {
                settled = tiny;
                if (++held >= hold || tiny) to_newton();
                continue;
            }
            if (job.lam == 0.0) {
                if (decrement <= 1e-18 * P || P == 0.0) return finish(2);
            } else if (close_by) {
                bool worth_it = tiny;
                const bool polished = job.polish && length == 1.0 && polish(&worth_it);
                if (polished) {  // a last step in double precision, so that the dual point matches theta exactly
                    exact = true;
                    direction();
                    for (i64 j = 0; j < order; ++j) {
                        base[j] = theta[j];
                        step[j] = delta[j];
                        theta[j] += delta[j];
                    }
                }
                if (worth_it || tiny) certified = closes(base, step, theta, closing_out);
                if (certified && polished) P = closed;
                if (certified && (polished || !job.polish)) return finish(1);
                if (polished) value_and_gradient(theta);
                if (decrement <= job.tol * P) exact = true;
            }
            if (tiny) return finish(certified ? 1 : 2);
            if (bent && length < 0.1) to_secant(theta);
        }
        return finish(certified ? 1 : 0);
    }
    NewtonReport finish(int status) {
        report.status = status;
        report.primal = P;
        return report;
    }
};

inline NewtonReport newton(const AnyRows& X, Targets t, LossSpec spec, NewtonJob job, double* theta, double* base,
                           double* step, double* closing, Arena* arena) {
    NewtonFit fit(X, t, spec, job, theta, arena);
    return arena->counts() ? NewtonReport{} : fit.run(base, step, closing);
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
