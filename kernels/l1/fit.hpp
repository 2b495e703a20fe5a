// A complete fit with an L1 penalty in one call, for features few enough to form the Hessian.
//
// Problem  min  sum s l(m) + l2/2 |w|^2 + l1 |w|_1. A prox-Newton step minimises the quadratic model of the smooth part
// plus the penalty (l1/quadratic_cd.hpp), after eliminating the intercept. The linearised dual point (sums/closing.hpp)
// then satisfies the optimality conditions up to the residual of the model, and the gap is the Fenchel-Young slack of
// the losses. src/linsep/solvers/l1/prox_newton.py is the same method over many blocks, with more iterations.
//
// Reference: Lee, Sun and Saunders, Proximal Newton-type methods for minimizing composite functions, 2014.
#pragma once
#include "l1/quadratic_cd.hpp"
#include "newton/fit.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

constexpr double kTinyCurve = 1e-12;  // relative increase of the diagonal where columns may be dependent
constexpr double kPolishTol = 1e-5;   // tolerance above which a fit is not polished
constexpr double kPolishWork = 3e6;   // multiply-adds of one Hessian up to which another one costs almost nothing
constexpr int kLassoPolishes = 4;     // steps whose decrease is below the rounding errors of P

struct LassoFit {
    const AnyRows& X;
    Targets t;
    LossSpec spec;
    LassoJob job;
    i64 n, d, order;
    double *theta, *trial, *delta, *g, *mu, *reach, *h, *z, *dz, *H, *pack;
    SparseQuadratic model;
    double P = 0, share = 0, damping = 0;
    double inner;       // violation of the optimality conditions allowed to a model near the end, relative to l1
    double near;        // decrease relative to P below which a closing pass is worthwhile
    bool exact;         // Hessians in double precision from now on
    bool last = false;  // polishing step: the model is solved to `inner`
    NewtonReport report{};

    LassoFit(const AnyRows& rows, Targets targets, LossSpec s, LassoJob j, double* th, Arena* arena)
        : X(rows),
          t(targets),
          spec(s),
          job(j),
          n(rows.n),
          d(rows.d),
          order(rows.d + 1),
          theta(th),
          model(rows.d, j.l1, arena) {
        const auto take = [arena](i64 size) { return arena->take(size + 8); };
        trial = take(order), delta = take(order), g = take(order + 1), mu = take(order), reach = take(order);
        h = take(n), z = take(n), dz = take(n);
        H = arena->take(order, order);
        pack = arena->take(gram_scratch(X.rows));
        inner = 0.25 * job.tol;
        near = larger(__builtin_sqrt(10.0 * job.tol) < 0.3 ? __builtin_sqrt(10.0 * job.tol) : 0.3, 1e-9);
        exact = !X.dense || d < kSingleFrom;
    }

    double penalty(const double* w) const {
        double sum = 0;
        for (i64 j = 0; j < d; ++j) sum += job.l1 * __builtin_fabs(w[j]) + 0.5 * job.l2 * w[j] * w[j];
        return sum;
    }

    // Rows far on the right side have almost no curvature, so that the step of the model is far too long. If P would
    // not decrease, every curvature is raised to at least the fraction `damping` of its bound; at 1, the model
    // majorises P.
    double value_and_gradient(const double* at) {
        for (i64 j = 0; j <= order; ++j) g[j] = 0.0;
        X.sweep(0, n, t, spec, at, g, h, true, 0.0);
        ++report.sweeps;
        if (damping > 0.0)
            for (i64 i = 0; i < n; ++i)
                h[i] = larger(h[i], damping * curvature_bound(spec) * (t.weight ? t.weight[i] : 1.0));
        for (i64 j = 0; j < d; ++j) g[1 + j] += job.l2 * at[j];
        if (!job.intercept) g[1 + d] = 0.0;
        return g[0] + penalty(at);
    }

    bool is_settled() const {
        for (i64 j = 0; j < d; ++j)
            if (breach_of(theta[j], g[1 + j], job.l1) > 0.0) return false;
        return true;
    }

    // Set up the model at theta: S and the slope, after eliminating the intercept.
    void pose() {
        hessian(X, h, job.l2, job.intercept, mu, H, pack, exact);
        ++report.grams;
        const double corner = H[d * order + d], gb = g[1 + d];
        const double inverse = corner > 0.0 ? 1.0 / corner : 0.0;
        share = 0.0;
        for (i64 j = 0; j < d; ++j) {
            const double cross = H[j * order + d] * inverse;
            double* row = model.S + j * d;
            for (i64 e = 0; e < d; ++e) row[e] = H[j * order + e] - cross * H[e * order + d];
            if (job.l2 == 0.0) row[j] *= 1.0 + kTinyCurve;
            model.x[j] = theta[j];
            model.slope[j] = g[1 + j] - (mu[j] + cross) * gb;
            share = larger(share, breach_of(theta[j], model.slope[j], job.l1) / job.l1);
        }
    }

    // Compute delta, the step to the minimum of the model; return the decrease of P predicted to first order.
    double direction() {
        for (;;) {
            pose();
            const double eta = last ? inner : larger(inner, share < 1.0 ? 0.01 * share * share : 0.01);
            model.minimise(eta * job.l1);
            double decrease = 0, crossed = 0, shifted = 0;
            for (i64 j = 0; j < d; ++j) {
                delta[j] = model.x[j] - theta[j];
                decrease -= g[1 + j] * delta[j] + job.l1 * (__builtin_fabs(model.x[j]) - __builtin_fabs(theta[j]));
                crossed += H[j * order + d] * delta[j];
                shifted += mu[j] * delta[j];
            }
            const double corner = H[d * order + d];
            delta[d] = corner > 0.0 ? -(g[1 + d] + crossed) / corner - shifted : 0.0;
            decrease -= g[1 + d] * delta[d];
            if (exact || (!is_blurred(decrease) && decrease - decrease == 0.0)) return decrease;
            exact = true;
        }
    }

    // Return whether single precision may affect the gap: it leaves an error of about 2e-7 sqrt(H_jj) |diag(H)^1/2
    // delta| in v_j, which must be small compared with l1 (or, with l2 > 0, its square compared with l2 P).
    bool is_blurred(double decrease) const {
        if (!(decrease <= near * P)) return false;
        double most = 0, length = 0;
        for (i64 j = 0; j < d; ++j) {
            most = larger(most, H[j * order + j]);
            length += H[j * order + j] * delta[j] * delta[j];
        }
        return 2e-7 * __builtin_sqrt(most * length) > 0.1 * job.tol * job.l1;
    }

    bool closes(const double* at, const double* base, const double* step, double* out) {
        for (i64 j = 0; j < 8 + 2 * d; ++j) out[j] = 0.0;
        X.closing(0, n, t, spec, base, step, at, nullptr, out, reach, nullptr);
        ++report.sweeps;
        const ClosedValues found = closed_values(out, at, d, job.l1, job.l2, job.intercept);
        report.primal = found.primal;
        report.dual = found.dual;
        return found.gap() <= job.tol * found.primal;
    }

    // Halve the step until P decreases sufficiently; return false once it is so short that the model must be wrong.
    bool shorter(double decrease) {
        Chunk c;
        const LossOps loss = ops(spec.id);
        X.dots(0, n, theta, z);
        X.dots(0, n, delta, dz);
        ++report.sweeps;
        for (double length = 0.5; length > 0.1; length *= 0.5) {
            for (i64 j = 0; j < order; ++j) trial[j] = theta[j] + length * delta[j];
            double value = penalty(trial);
            for (i64 r = 0; r < n; r += kMaxChunk) {
                const int nr = (int)min64(kMaxChunk, n - r), np = padded(nr);
                for (int i = 0; i < nr; ++i) c.m[i] = z[r + i] + length * dz[r + i];
                margins(c, t, r, nr);
                loss.at(np, spec.shape, c.m, c.value, c.slope, c.curvature);
                value += weighted_total(c.value, c.weight, np) + not_finite(c.m, np);
            }
            if (value <= P - 1e-4 * length * decrease) return true;
        }
        return false;
    }

    void move_to(double value) {
        for (i64 j = 0; j < order; ++j) theta[j] = trial[j];
        P = value;
    }

    // Take one step along delta, shortened or damped if necessary; return false if P cannot be decreased.
    bool advance(double decrease) {
        for (i64 j = 0; j < order; ++j) trial[j] = theta[j] + delta[j];
        double next = value_and_gradient(trial);
        if (!(next <= P - 1e-4 * decrease)) {
            if (!shorter(decrease)) {
                if (damping >= 1e6) return false;
                damping = larger(10.0 * damping, 1e-3);
                value_and_gradient(theta);
                return true;
            }
            next = value_and_gradient(trial);
        }
        move_to(next);
        if (damping > 0.0) {
            damping = damping > 1e-3 ? 0.1 * damping : 0.0;
            value_and_gradient(theta);
        }
        return true;
    }

    // Take one more step where it costs almost nothing: the optimality conditions then hold to more digits than P.
    void polish(double* base, double* step, double* out) {
        const Allocated<double> copies(8 + 2 * d + 2 * order);
        double* const kept = copies.at;
        if (!kept) return;
        double* const parts[3] = {out, base, step};
        const i64 sizes[3] = {8 + 2 * d, order, order};
        const double before = report.primal - report.dual;
        for (int p = 0, at = 0; p < 3; at += (int)sizes[p++])
            for (i64 j = 0; j < sizes[p]; ++j) kept[at + j] = parts[p][j];
        value_and_gradient(theta);
        exact = last = true;
        inner = 1e-12;
        direction();
        for (i64 j = 0; j < order; ++j) base[j] = theta[j], step[j] = delta[j], trial[j] = theta[j] + delta[j];
        closes(trial, base, step, out);
        if (report.primal - report.dual <= before) {
            move_to(report.primal);
        } else {
            for (int p = 0, at = 0; p < 3; at += (int)sizes[p++])
                for (i64 j = 0; j < sizes[p]; ++j) parts[p][j] = kept[at + j];
        }
    }

    // Run the fit. theta is the start and becomes the solution; base, step and out describe its dual point.
    // status: 0 step limit, 1 gap <= tol, 2 no further progress, 4 not finite
    NewtonReport run(double* base, double* step, double* out) {
        P = value_and_gradient(theta);
        if (is_settled()) {  // the start is optimal: no Hessian is needed
            for (i64 j = 0; j < order; ++j) base[j] = theta[j], step[j] = delta[j] = 0.0;
            if (closes(theta, base, step, out)) return finish(1);
        }
        int polished = 0;
        for (report.steps = 0; report.steps < job.max_steps; ++report.steps) {
            poll();
            if (!(P - P == 0.0)) return finish(4);
            const double decrease = direction();
            if (!(decrease - decrease == 0.0)) return finish(4);
            const bool tiny = !(decrease > 1e-13 * P);
            if (damping == 0.0 && decrease <= near * P) {
                for (i64 j = 0; j < order; ++j) {
                    base[j] = theta[j], step[j] = delta[j];
                    trial[j] = theta[j] + delta[j];
                }
                if (closes(trial, base, step, out)) {
                    move_to(report.primal);
                    if (job.tol <= kPolishTol && (double)X.n_entries() * (double)(d + 8) <= kPolishWork)
                        polish(base, step, out);
                    return finish(1);
                }
                if (decrease <= job.tol * P) inner *= 0.1, exact = true;
                if (tiny) {  // below the rounding errors of P, but further steps still reduce the gap
                    if (++polished > kLassoPolishes) return finish(2);
                    move_to(value_and_gradient(trial));
                    continue;
                }
            }
            if (!advance(decrease)) return finish(2);
        }
        return finish(0);
    }
    NewtonReport finish(int status) {
        report.status = status;
        report.primal = P;
        return report;
    }
};

inline NewtonReport lasso_newton(const AnyRows& X, Targets t, LossSpec spec, LassoJob job, double* theta, double* base,
                                 double* step, double* closing, Arena* arena) {
    LassoFit fit(X, t, spec, job, theta, arena);
    return arena->counts() ? NewtonReport{} : fit.run(base, step, closing);
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
