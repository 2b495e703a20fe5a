// Prox-Newton for L1 and group penalties on a working set of few features, by the columns of X.
//
// Problem  min  sum s l(m) + sum_g (ridge_g/2 |w_g|^2 + weight_g |w_g|)  over the coefficients of `count` features, in
// groups (of one for an L1 penalty), and the intercept. Each step minimises the quadratic model of the losses plus the
// penalty (l1/column_model.hpp). The linearised dual point (sums/closing.hpp) of the last step is then feasible up to
// the residual of the model, which `eta` bounds; the fit stops on the duality gap of these features.
#pragma once
#include "l1/column_model.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

constexpr double kFar = 0.3;   // relative violation of the optimality conditions above which a model is solved roughly
constexpr double kFlat = 0.1;  // curvature, relative to its bound, that replaces zero curvature

template <class R>
struct ColumnFit {
    const R& X;
    Targets t;
    LossSpec spec;
    ColumnJob job;
    i64 n, k;
    double *w, *z;  // of the caller: coefficients and intercept [k + 1], scores [n]
    ColumnModel<R> model;
    double *q, *h, *x;  // of the model: slopes and curvatures of the rows, its minimiser
    double* dz;         // change of the scores
    double P = 0, damping = 0;
    int stalls = 0;
    ColumnReport report{};

    ColumnFit(const R& columns, Targets targets, LossSpec s, ColumnJob j, double* weights, double* scores, Arena* arena)
        : X(columns),
          t(targets),
          spec(s),
          job(j),
          n(columns.d),
          k(j.count),
          w(weights),
          z(scores),
          model(columns, j, weights, arena),
          q(model.q),
          h(model.h),
          x(model.x),
          dz(arena->take(columns.d + 8)) {
        // with an L1 penalty, the central path takes over from models that are hard to solve
        model.patient = spec.id == LossId::squared && !model.singles();
    }

    // Sum of the losses at z + step (dz + beta), with slopes and curvatures if requested. Rows far on the right side
    // have almost no curvature, so that the step of the model is far too long. If P would not decrease, every curvature
    // is raised to at least the fraction `damping` of its bound; at 1, the model majorises P.
    double losses(double step, bool derivatives) {
        Chunk c;
        double sum = 0;
        const LossOps loss = ops(spec.id);
        for (i64 i0 = 0; i0 < n; i0 += kMaxChunk) {
            const int nr = (int)min64(kMaxChunk, n - i0), np = padded(nr);
            if (step == 0.0)
                for (int i = 0; i < nr; ++i) c.m[i] = z[i0 + i];
            else
                for (int i = 0; i < nr; ++i) c.m[i] = z[i0 + i] + step * (dz[i0 + i] + model.beta);
            margins(c, t, i0, nr);
            loss.at(np, spec.shape, c.m, c.value, c.slope, c.curvature);
            sum += weighted_total(c.value, c.weight, np) + not_finite(c.m, np);
            if (derivatives && damping > 0.0)
                for (int i = 0; i < nr; ++i) c.curvature[i] = larger(c.curvature[i], damping * curvature_bound(spec));
            if (derivatives)
                for (int i = 0; i < nr; ++i) {
                    q[i0 + i] = c.weight[i] * t.sign[i0 + i] * c.slope[i];
                    h[i0 + i] = c.weight[i] * c.curvature[i];
                }
        }
        return sum;
    }

    // Lower bound for these features at the linearised dual point of the model; -1 if it is infeasible.
    double dual_bound() {
        Chunk c;
        double u[kRoom], conj[kRoom], inside[kRoom], sum = 0;
        const LossOps loss = ops(spec.id);
        for (i64 i0 = 0; i0 < n; i0 += kMaxChunk) {
            const int nr = (int)min64(kMaxChunk, n - i0), np = padded(nr);
            for (int i = 0; i < np; ++i) u[i] = c.weight[i] = 0.0;
            for (int i = 0; i < nr; ++i) {
                c.weight[i] = t.weight ? t.weight[i0 + i] : 1.0;
                const double v = t.sign[i0 + i] * c.weight[i];
                u[i] = v != 0.0 ? -(q[i0 + i] + h[i0 + i] * model.beta) / v : 0.0;
            }
            loss.conjugate(np, spec.shape, u, conj, inside);
            for (int i = 0; i < nr; ++i) {
                if (c.weight[i] == 0.0) continue;
                if (inside[i] == 0.0) return -1.0;
                sum += c.weight[i] * (conj[i] + (t.offset ? u[i] * t.offset[i0 + i] : 0.0));
            }
        }
        double* v = model.slope;
        for (i64 a = 0; a < k; ++a) v[a] = X.dot_row(job.list[a], q) + model.beta * model.hx[a];
        double most = 1.0, cost = 0;  // largest |v_g|/weight, and the conjugate of the penalty with a ridge
        for (i64 c = 0; c < job.groups; ++c) {
            const double length = model.norm(c, v), over = length - job.weights[c];
            if (!(over > 0.0)) continue;
            if (job.ridges[c] > 0.0)
                cost += 0.5 * over * over / job.ridges[c];
            else
                most = larger(most, length / job.weights[c]);
        }
        return -sum / most - cost;
    }

    // Run the fit. base and step [k + 1] describe the linearised dual point of the last step.
    // status: 0 step limit, 1 gap <= tol, 2 no further progress, 4 not finite
    ColumnReport run(double* base, double* step) {
        P = losses(0.0, true) + model.penalty(w);
        double best = 1e300;
        for (report.steps = 0; report.steps < job.max_steps && model.work < model.budget(); ++report.steps) {
            if (!(P - P == 0.0)) return finish(4);
            double share = model.pose();
            if (damping == 0.0 && model.flat()) {
                damping = kFlat;
                losses(0.0, true);
                share = model.pose();
            }
            const double eta = larger(0.25 * job.tol, share < 1.0 ? 0.1 * share : 0.1);
            model.minimise(eta, share > kFar && !model.patient);
            const double decrease = -model.slope_b * model.beta - penalty_change();
            for (i64 a = 0; a < k; ++a) model.move[a] = x[a] - w[a], model.order[a] = a;
            model.combine(model.order, k, model.move, dz);
            const bool near = damping == 0.0 && decrease <= 0.1 * P;
            const double bound = near ? dual_bound() : -1.0;
            const double next = losses(1.0, true) + model.penalty(x);
            if (bound > 0.0 && next - bound <= job.tol * next) {
                report.gap = best = (next - bound) / next;
                keep(base, step);
                advance(1.0);
                P = next;
                return finish(1);
            }
            if (bound > 0.0 && next - bound < best * next) report.gap = best = (next - bound) / next;
            keep(base, step);
            if (next < P && next <= P - 1e-4 * decrease) {
                advance(1.0);
                P = next;
                if (damping > 0.0) {
                    damping = damping > 1e-3 ? 0.1 * damping : 0.0;
                    losses(0.0, true);
                }
                continue;
            }
            if (!(decrease > 1e-14 * P)) {  // below the rounding errors of P
                if (!(next <= P * (1.0 + 1e-14)))
                    losses(0.0, true);
                else
                    advance(1.0), P = next;
                if (++stalls > 3) return finish(2);
                continue;
            }
            if (!shorter(decrease)) {
                if (damping >= 1e6) return finish(2);
                damping = larger(10.0 * damping, 1e-3);
                losses(0.0, true);
            }
        }
        return finish(0);
    }

    // Predicted change of P by the coefficients: the gradient g times their change, plus the change of the norms
    double penalty_change() const {
        double sum = 0;
        for (i64 a = 0; a < k; ++a) sum += model.g[a] * (x[a] - w[a]);
        for (i64 c = 0; c < job.groups; ++c) sum += job.weights[c] * (model.norm(c, x) - model.norm(c, w));
        return sum;
    }
    void keep(double* base, double* step) const {
        for (i64 a = 0; a < k; ++a) base[a] = w[a], step[a] = x[a] - w[a];
        base[k] = w[k];
        step[k] = model.beta;
    }
    void advance(double length) {
        for (i64 a = 0; a < k; ++a) w[a] = length == 1.0 ? x[a] : w[a] + length * (x[a] - w[a]);
        for (i64 i = 0; i < n; ++i) z[i] += length * (dz[i] + model.beta);
        w[k] += length * model.beta;
    }
    // Halve the step until P decreases sufficiently; return false once it is so short that the model must be wrong.
    bool shorter(double decrease) {
        for (double length = 0.5;; length *= 0.5) {
            for (i64 a = 0; a < k; ++a) model.slope[a] = w[a] + length * (x[a] - w[a]);
            const double part = losses(length, false) + model.penalty(model.slope);
            if (part < P && part <= P - 1e-4 * length * decrease) {
                advance(length);
                losses(0.0, true);
                P = part;
                return true;
            }
            if (length < 0.1) return false;
        }
    }
    ColumnReport finish(int status) {
        report.status = status;
        report.primal = P;
        report.sweeps = model.sweeps, report.solves = model.solves, report.gradients = model.gradients;
        return report;
    }
};

template <class R>
ColumnReport column_newton(const R& columns, Targets t, LossSpec spec, ColumnJob job, double* theta, double* z,
                           double* base, double* step, Arena* arena) {
    ColumnFit fit(columns, t, spec, job, theta, z, arena);
    return arena->counts() ? ColumnReport{} : fit.run(base, step);
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
