// A complete fit of a loss with one kink in one call: interior/passes.hpp describes the method, interior/crossover.hpp
// the last step.
//
// Start: the minimiser of the corresponding squared loss (squared hinge or least squares), and the point of the central
// path at its margins for mu = width * median |v|. This halves the number of iterations of a cold start. For a loose
// tolerance, the fit ends with the first iterate that reaches it, after moving rows to the bound of their box where
// they are likely to end. Otherwise the iteration continues far below tol, where one small linear system gives the
// exact solution. src/linsep/solvers/interior/kinked.py is the same method over many blocks.
#pragma once
#include "interior/crossover.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

constexpr double kShare = 0.995;  // fraction of the step to the boundary
constexpr double kMost = 3.0;     // largest initial mu, as a multiple of the objective per row
// At most kCorrectors centrality correctors, for steps below kLong. They aim at a step of longer(), and must gain at
// least the fraction kGain of the difference.
constexpr int kCorrectors = 2;
constexpr double kLong = 0.7, kGain = 0.1;
inline double longer(double step) {
    const double more = step + 0.3 > 1.08 * step + 0.08 ? step + 0.3 : 1.08 * step + 0.08;
    return more < 1.0 ? more : 1.0;
}

constexpr int kRounds = 40;        // rounds of the crossover
constexpr double kExact = 1e-12;   // relative gap below which no better point is sought
constexpr double kRough = 1e-4;    // tolerance from which no exact point is sought
constexpr double kVertex = 1e-11;  // relative gap above which a vertex is not optimal

// Median of |v| over a sample of the rows with positive weight; 0 if there are none.
inline double usual_distance(i64 n, const Targets& t, const double* v) {
    constexpr int most = 512;
    double some[most];
    int count = 0;
    const i64 stride = (n + most - 1) / most;
    for (i64 i = 0; i < n; i += stride) {
        if (t.weight && !(t.weight[i] > 0.0)) continue;
        const double x = __builtin_fabs(v[i]);
        some[count++] = x;
    }
    for (int gap = 121; gap > 0; gap /= 3)  // shell sort: 121, 40, 13, 4, 1
        for (int i = gap; i < count; ++i) {
            const double x = some[i];
            int j = i;
            for (; j >= gap && some[j - gap] > x; j -= gap) some[j] = some[j - gap];
            some[j] = x;
        }
    return count ? some[count / 2] : 0.0;
}

struct InteriorFit {
    const AnyRows& X;
    Targets t;
    LossSpec spec;
    Box box;
    InteriorJob job;
    i64 n, d, order;
    RowState state;
    State s;
    double *theta, *delta, *along, *rhs, *centred, *res, *mu, *sums, *h, *H, *pack;
    double *middle, *spread;  // lam = 0: the mean of the rows, sqrt(sum s sum s (x - middle)^2)
    double *kept_theta, *kept_u, *kept_out, *margins;  // the best point so far
    Arena spare;                                       // scratch of the start, then of the crossover
    Cholesky chol;
    double P = 0, gap = 0, step = 0, least = __builtin_inf(), mass = 0;
    InteriorReport report{};

    InteriorFit(const AnyRows& rows, Targets targets, LossSpec l, InteriorJob j, double* th, Arena* arena)
        : X(rows),
          t(targets),
          spec(l),
          box(l),
          job(j),
          n(rows.n),
          d(rows.d),
          order(rows.d + 1),
          state{arena->take(kPlanes, rows.n), rows.n},
          s(state),
          theta(th) {
        delta = arena->take(order + 8);
        along = arena->take(order + 8);
        rhs = arena->take(order + 8);
        centred = arena->take(order + 8);
        res = arena->take(order + 8);
        mu = arena->take(order + 8);
        middle = arena->take(order + 8);
        spread = arena->take(order + 8);
        sums = arena->take(2 * order + 8);
        chol.scale = arena->take(order + 8);
        h = arena->take(n);
        H = arena->take(order, order);
        chol.U = arena->take(order, order);
        chol.n = order;
        pack = arena->take(gram_scratch(X.rows));
        kept_theta = arena->take(order);
        kept_u = arena->take(n);
        kept_out = arena->take(8 + 2 * order);
        margins = arena->take(n);
        spare = *arena;
        Arena for_start = spare, for_end = spare;
        NewtonFit(X, t, spec, NewtonJob{}, theta, &for_start);
        Crossover(X, t, box, job.lam, job.intercept, nullptr, theta, kept_u, margins, &for_end);
        arena->cover(for_start, for_end);
    }

    static void clear(double* a, i64 size) {
        for (i64 j = 0; j < size; ++j) a[j] = 0.0;
    }
    static void copy(const double* from, double* to, i64 size) {
        for (i64 j = 0; j < size; ++j) to[j] = from[j];
    }

    // Set theta to the minimiser of the squared loss with the same kink.
    void start() {
        Targets shifted = t;
        const bool even = box.lo < 0.0;
        if (!even && box.kink != 1.0) {
            for (i64 i = 0; i < n; ++i) margins[i] = (t.offset ? t.offset[i] : 0.0) + 1.0 - box.kink;
            shifted.offset = margins;
        }
        const LossSpec squared{even ? LossId::squared : LossId::squared_hinge, {1.0, box.kink}};
        const NewtonJob easy{job.lam, 1e-2, 40, job.intercept, 0};
        Arena arena = spare;
        NewtonFit fit(X, shifted, squared, easy, theta, &arena);
        const NewtonReport found = fit.run(rhs, centred, kept_out);
        report.sweeps += found.sweeps;
        report.grams += found.grams;
        double finite = 0;
        for (i64 j = 0; j < order; ++j) finite += theta[j] - theta[j];
        if (finite != 0.0) clear(theta, order);
    }

    // Set the state to the central path at theta.
    void place(bool cold) {
        clear(sums, 1);
        X.kink_margins(0, n, t, spec, theta, s.v, sums);
        ++report.sweeps;
        double usual = usual_distance(n, t, s.v), mean = 0;
        mass = 0;
        for (i64 i = 0; i < n; ++i) {
            const double w = t.weight ? t.weight[i] : 1.0;
            mean += w * __builtin_fabs(s.v[i]);
            mass += w;
        }
        mean = mass > 0.0 ? mean / mass : 0.0;
        if (cold || usual < 1e-3 * mean) usual = 0.5 * mean;
        if (!(usual > 1e-100)) usual = 1e-8;
        // Bound mu: its gap, 2 mu per row, should not be many times the objective
        // (src/linsep/solvers/interior/central_path.py).
        const double most = kMost * (sums[0] + 0.5 * job.lam * dot_n(theta, theta, d)) / mass;
        double begin = box.width() * usual;
        if (!cold && most > 0.0 && begin > most) begin = most;
        ipm_central(0, n, box, begin, s);
        step = 0;
    }

    // Without a penalty, dual feasibility requires r = sum s sign u x~ = 0. Measure r relative to its possible size, so
    // that the scales of the columns do not matter, nor a constant column, which duplicates the intercept.
    void measure_spread() {
        double total = 0;
        for (i64 i = 0; i < n; ++i) total += h[i] = t.weight ? t.weight[i] : 1.0;
        hessian(X, h, 0.0, job.intercept, middle, H, pack);
        ++report.grams;
        for (i64 j = 0; j < d; ++j) spread[j] = __builtin_sqrt(total * H[j * order + j]);
        spread[d] = total;
    }
    double imbalance(const double* r, double rb) const {
        double most = job.intercept && spread[d] > 0.0 ? __builtin_fabs(rb) / spread[d] : 0.0;
        for (i64 j = 0; j < d; ++j) {
            const double share = spread[j] > 0.0 ? __builtin_fabs(r[j] - middle[j] * rb) / spread[j] : 0.0;
            if (!(share <= most)) most = share;
        }
        return most;
    }

    // Take the last step, and compute P and the gap. The gap has no negative terms, so there is no cancellation.
    void measure() {
        clear(sums, 3 + 2 * order);
        X.ipm_gather(0, n, t, spec, step, state, h, sums);
        step = 0;
        double r2 = 0;
        for (i64 j = 0; j < d; ++j) {
            const double r = sums[3 + j] - job.lam * theta[j];
            r2 += r * r;
        }
        P = sums[0] + 0.5 * job.lam * dot_n(theta, theta, d);
        gap = sums[1];
        if (job.lam > 0.0) {
            gap += 0.5 * r2 / job.lam;
            if (job.intercept) gap += __builtin_fabs(sums[3 + d] * theta[d]);
        } else {
            gap += P * imbalance(sums + 3, sums[3 + d]);
        }
        ++report.sweeps;
    }

    // delta = H^-1 rhs, in the original coordinates.
    void direction() {
        for (i64 j = 0; j < d; ++j) centred[j] = rhs[j] - mu[j] * rhs[d];
        centred[d] = rhs[d];
        chol.solve_refined(H, centred, delta, res);
        if (job.intercept) delta[d] -= dot_n(mu, delta, d);
    }

    // Take one step, from the sums of measure(); return false if it is too short.
    bool advance() {
        const double complement = sums[2];
        for (i64 j = 0; j < order; ++j) rhs[j] = sums[3 + j] - sums[3 + order + j] - (j < d ? job.lam * theta[j] : 0.0);
        if (!job.intercept) rhs[d] = 0.0;
        hessian(X, h, job.lam, job.intercept, mu, H, pack);
        chol.factor(H, job.lam == 0.0);
        ++report.grams;
        direction();
        clear(sums, 1 + 2 * order);
        const double far = X.ipm_predict(0, n, t, delta, state, sums);
        const double mu_now = complement / (2.0 * mass), target = mu_now * centring(far, complement, sums[0]);
        for (i64 j = 0; j < order; ++j) rhs[j] += target * sums[1 + j] + sums[1 + order + j];
        if (!job.intercept) rhs[d] = 0.0;
        direction();
        copy(delta, along, order);
        double reach = X.ipm_correct(0, n, t, delta, target, state);
        report.sweeps += 2;
        for (int k = 0; k < kCorrectors && recentre(target, &reach); ++k);
        step = reach > kShare ? kShare / reach : 1.0;
        for (i64 j = 0; j < order; ++j) theta[j] += step * along[j];
        return step > 1e-8 && reach - reach == 0.0;
    }
    // Add a centrality corrector if the step is short and the corrector lengthens it; return whether it was added.
    bool recentre(double target, double* reach) {
        const double length = kShare / *reach, goal = longer(length);
        if (!(length < kLong)) return false;
        clear(rhs, order);
        X.ipm_recentre(0, n, t, goal, target, state, rhs);
        if (!job.intercept) rhs[d] = 0.0;
        direction();
        const double found = X.ipm_attempt(0, n, t, delta, goal, target, state);
        report.sweeps += 2;
        if (!(kShare / found >= length + kGain * (goal - length))) return false;
        ipm_adopt(0, n, t, goal, target, s);
        for (i64 j = 0; j < order; ++j) along[j] += delta[j];
        *reach = found;
        return true;
    }
    // Mehrotra's rule: the cube of the fraction of the complementarity that remains after the predictor step.
    static double centring(double far, double complement, double second) {
        const double length = far > 1.0 ? 1.0 / far : 1.0;
        const double left = 1.0 - length + length * length * second / complement;
        const double cube = left * left * left;
        return cube > 1e-6 ? (cube < 1.0 ? cube : 1.0) : 1e-6;
    }

    // Iterate until gap <= target * P; return false if the gap no longer falls.
    bool descend(double target, int limit) {
        double landmark = __builtin_inf();
        for (int idle = 0; idle < 12; ++report.steps) {
            poll();
            measure();
            if (!(gap - gap == 0.0)) return false;
            if (gap <= target * P) return true;
            idle = gap < 0.9 * landmark ? 0 : idle + 1;  // slow progress counts as progress
            if (idle == 0) landmark = gap;
            if (report.steps >= limit || !advance()) return false;
            if (report.steps % 8 == 7) {  // recompute v against accumulated rounding errors
                measure();
                clear(sums, 1);
                X.kink_margins(0, n, t, spec, theta, s.v, sums);
                ++report.sweeps;
            }
        }
        return false;
    }

    // Store (theta, u) if its relative gap, by the closing pass, is the smallest so far, or if it is the exact point.
    void keep(double* u, double* out, bool exact) {
        make_feasible(n, t, box, job.intercept, u);
        clear(out, 8 + 2 * d);
        X.closing(0, n, t, spec, theta, theta, theta, u, out, nullptr, nullptr);
        ++report.sweeps;
        const ClosedValues values = closed_values(out, theta, d, 0.0, job.lam, job.intercept);
        const double primal = values.primal;
        double found = values.gap();
        if (job.lam == 0.0) {  // the dual point must be feasible
            for (i64 j = 0; j < d; ++j) res[j] = out[8 + j] + out[8 + d + j];
            found = __builtin_fabs(primal + out[1] + out[2]) +
                    out[6] * imbalance(res, job.intercept ? out[3] - out[4] : 0.0);
        }
        found /= primal > 0.0 ? primal : 1e-300;
        if (job.lam == 0.0 && !(found <= kVertex)) exact = false;
        if (!(found < least || (exact && found <= job.tol))) return;
        least = found;
        report.exact = exact;
        report.primal = primal;
        copy(theta, kept_theta, order);
        copy(u, kept_u, n);
        copy(out, kept_out, 8 + 2 * d);
    }

    bool cross(double* u, double* out) {
        copy(theta, rhs, order);
        copy(s.v, margins, n);
        Arena arena = spare;
        Crossover over(X, t, box, job.lam, job.intercept, nullptr, theta, u, margins, &arena);
        const bool right = over.run(kRounds);
        report.sweeps += over.sweeps;
        report.grams += over.grams;
        keep(u, out, right);
        copy(rhs, theta, order);
        return least <= job.tol && ((right && report.exact) || least <= kExact);
    }

    // Move the rows that are nearer to a bound of the box than to the kink, in relative distances, to that bound, and
    // return whether the gap is then at most tol: the support is then as small as at the optimum.
    bool enough(double* u, double* out) {
        if (step > 0.0) measure();
        double most = 0;
        for (i64 i = 0; i < n; ++i) most = __builtin_fabs(s.v[i]) > most ? __builtin_fabs(s.v[i]) : most;
        for (i64 i = 0; i < n; ++i) {
            const double a = s.a[i], t = s.t[i], far = __builtin_fabs(s.v[i]) * box.width();
            if (a < t)
                u[i] = a * most <= far ? box.lo : box.lo + a;
            else
                u[i] = t * most <= far ? box.hi : box.hi - t;
        }
        keep(u, out, false);
        return least <= job.tol;
    }

    InteriorReport answer(double* u, double* out) {
        copy(kept_theta, theta, order);
        copy(kept_u, u, n);
        copy(kept_out, out, 8 + 2 * d);
        report.status = least <= job.tol ? 1 : 2;
        return report;
    }

    // status: 1 gap <= tol, 2 gap > tol, 3 no point found. theta is the start (if warm) and becomes the solution, with
    // u and the closing sums.
    InteriorReport run(double* u, double* out) {
        if (!job.warm) start();
        if (job.lam == 0.0) measure_spread();
        place(false);
        const bool rough = job.lam > 0.0 && job.tol >= kRough;
        constexpr double shares[] = {4.0, 0.5};
        for (const double share : shares)  // moving rows to their bounds usually reduces the gap
            if (rough && descend(share * job.tol, job.max_steps) && enough(u, out)) return answer(u, out);
        double target = job.tol < 1e-8 ? 0.1 * job.tol : 1e-9;
        bool falling = descend(target, job.max_steps);
        if (!falling && !(gap <= 1e-3 * P)) {
            clear(theta, order);
            place(true);
            falling = descend(target, 2 * job.max_steps);
        }
        for (int trial = 0; trial < 3; ++trial, target *= 1e-2) {
            if (trial > 0) falling = falling && descend(target, 2 * job.max_steps);
            if (step > 0.0) measure();
            for (int exact = 1; exact >= 0; --exact) {
                for (i64 i = 0; i < n; ++i) u[i] = s.a[i] < s.t[i] ? box.lo + s.a[i] : box.hi - s.t[i];
                if (!exact)
                    keep(u, out, false);
                else if (cross(u, out))
                    break;
            }
            if (report.exact || least <= kExact || !falling) break;
        }
        if (!(least < __builtin_inf())) {
            report.status = 3;
            return report;
        }
        return answer(u, out);
    }
};

inline InteriorReport interior(const AnyRows& X, Targets t, LossSpec spec, InteriorJob job, double* theta, double* u,
                               double* closing, Arena* arena) {
    InteriorFit fit(X, t, spec, job, theta, arena);
    return arena->counts() ? InteriorReport{} : fit.run(u, closing);
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
