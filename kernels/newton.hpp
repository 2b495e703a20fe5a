// A whole fit in one call, for problems so small that Python between two passes would cost more than the passes.
//
// Newton's method on  P(theta) = lam/2 |w|^2 + sum s l(m)  in the centred coordinates (x - mu, 1): sweep, Gram,
// Cholesky of the Jacobi-scaled Hessian with one refinement, unit step, and an exact line search on stored scores
// when P would rise (which makes it finite for the piecewise quadratic losses, Keerthi and DeCoste 2005). Stops on
// the Newton-dual gap of the closing pass. src/linsep/solvers/newton.py is the same method over many blocks.
#pragma once
#include "closing.hpp"
#include "gram.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

inline double dot_n(const double* a, const double* b, i64 n) {
    vd s{};
    i64 i = 0;
    for (; i + VL <= n; i += VL) s += load(a + i) * load(b + i);
    double r = total(s);
    for (; i < n; ++i) r += a[i] * b[i];
    return r;
}

// L L' = S A S + tiny, S = diag(A)^(-1/2), L by rows. Columns without weight (or, when nothing regularises them,
// dependent ones) get scale 0: the step leaves them alone.
struct Cholesky {
    i64 n;
    double *L, *scale;

    void factor(const double* A, bool drop) {
        for (i64 i = 0; i < n; ++i) {
            const double a = A[i * n + i];
            scale[i] = a > 0.0 ? 1.0 / __builtin_sqrt(a) : 0.0;
        }
        for (i64 i = 0; i < n; ++i) {
            double* row = L + i * n;
            for (i64 j = 0; j < i; ++j)
                row[j] = (A[i * n + j] * scale[i] * scale[j] - dot_n(row, L + j * n, j)) / L[j * n + j];
            double pivot = 1.0 - dot_n(row, row, i);
            if (scale[i] == 0.0 || (drop && pivot < 1e-13)) {
                scale[i] = 0.0;
                for (i64 j = 0; j < i; ++j) row[j] = 0.0;
                pivot = 1.0;
            }
            row[i] = __builtin_sqrt(pivot > 1e-15 ? pivot : 1e-15);
        }
    }
    void solve(const double* b, double* x) const {
        for (i64 i = 0; i < n; ++i) x[i] = (b[i] * scale[i] - dot_n(L + i * n, x, i)) / L[i * n + i];
        for (i64 i = n; i-- > 0;) {
            x[i] /= L[i * n + i];
            for (i64 j = 0; j < i; ++j) x[j] -= L[i * n + j] * x[i];
        }
        for (i64 i = 0; i < n; ++i) x[i] *= scale[i];
    }
    // x = A^-1 b with one step of refinement; res is room for n numbers.
    void solve_refined(const double* A, const double* b, double* x, double* res) const {
        solve(b, x);
        for (i64 i = 0; i < n; ++i) res[i] = scale[i] == 0.0 ? 0.0 : b[i] - dot_n(A + i * n, x, n);
        solve_in_place(res);
        for (i64 i = 0; i < n; ++i) x[i] += res[i];
    }
    void solve_in_place(double* x) const { solve(x, x); }
};

// The mean of the rows weighted by their curvatures h: outliers that have run away do not count. 0 if sparse.
template <class R>
void centre(const R& X, const double* h, bool intercept, double* mu) {
    for (i64 j = 0; j < X.d; ++j) mu[j] = 0.0;
    if (!intercept || !R::dense) return;
    double a[kRoom], sum = 0;
    int list[kRoom];
    for (i64 r = 0; r < X.n; r += X.chunk()) {
        const int nr = (int)min64(X.chunk(), X.n - r);
        for (int i = 0; i < nr; ++i) {
            a[i] = h[r + i];
            sum += a[i];
        }
        const int count = keep_nonzero(a, nr, list);
        X.add(r, list, count, a, mu);
    }
    for (i64 j = 0; j < X.d; ++j) mu[j] /= sum > 0.0 ? sum : 1.0;
}

// H = lam I_w + sum h (x - mu, 1)(x - mu, 1)', both triangles, about the mean mu weighted by h.
template <class R>
void hessian(const R& X, const double* h, double lam, bool intercept, double* mu, double* H, double* pack) {
    const i64 d = X.d, order = d + 1;
    centre(X, h, intercept, mu);
    for (i64 j = 0; j < order * order; ++j) H[j] = 0.0;
    gram(X, 0, X.n, h, mu, H, pack);
    for (i64 i = 0; i < order; ++i)
        for (i64 j = i + 1; j < order; ++j) {
            // dense kernels fill the upper triangle, sparse ones either: the other entry is 0
            const double both = R::dense ? H[i * order + j] : H[i * order + j] + H[j * order + i];
            H[i * order + j] = H[j * order + i] = both;
        }
    for (i64 j = 0; j < d; ++j) {
        // A constant column is the intercept over again: what centring leaves of it is rounding noise.
        if (H[j * order + j] <= 1e-24 * mu[j] * mu[j] * H[d * order + d])
            for (i64 i = 0; i < order; ++i) H[j * order + i] = H[i * order + j] = 0.0;
        H[j * order + j] += lam;
    }
    if (!intercept)
        for (i64 j = 0; j < order; ++j) H[j * order + d] = H[d * order + j] = 0.0;
}

// Primal minus dual value from the closing sums (src/linsep/certificates/closing.py has the text with the rounding allowance).
inline double gap_of(const double* c, i64 d, double lam, const double* theta, bool intercept, double* primal) {
    double kp = 1.0, km = 1.0;
    if (intercept) {
        if (c[3] > c[4]) kp = c[4] / c[3];
        if (c[4] > c[3]) km = c[3] / c[4];
    }
    double v2 = 0, w2 = 0;
    for (i64 j = 0; j < d; ++j) {
        const double v = kp * c[8 + j] + km * c[8 + d + j];
        v2 += v * v;
        w2 += theta[j] * theta[j];
    }
    *primal = c[0] + 0.5 * lam * w2;
    return *primal + kp * c[1] + km * c[2] + 0.5 * v2 / lam;
}

template <class R>
struct NewtonFit {
    const R& X;
    Targets t;
    LossSpec spec;
    NewtonJob job;
    i64 n, d, order;
    double *theta, *trial, *delta, *g, *rhs, *res, *mu, *h, *z, *dz, *H, *pack;
    Cholesky chol;
    double P = 0;
    double blend = 0;  // 1: secant curvatures, for a few steps after curvature was missing
    int hold = 1, held = 0;
    bool lost = false;  // the last direction ignores part of the gradient, for want of curvature
    NewtonReport report{};

    NewtonFit(const R& rows, Targets targets, LossSpec s, NewtonJob j, double* th, double* at)
        : X(rows), t(targets), spec(s), job(j), n(rows.n), d(rows.d), order(rows.d + 1), theta(th) {
        const auto take = [&at](i64 size) {
            double* p = at;
            at += size;
            return p;
        };
        trial = take(order + 8);
        delta = take(order + 8);
        g = take(order + 8);
        rhs = take(order + 8);
        res = take(order + 8);
        mu = take(order + 8);
        chol.scale = take(order + 8);
        h = take(n + 8);
        z = take(n + 8);
        dz = take(n + 8);
        H = take(order * order);
        chol.L = take(order * order);
        chol.n = order;
        pack = at;
    }

    double penalty(const double* w) const { return 0.5 * job.lam * dot_n(w, w, d); }

    void value_and_gradient(const double* at) {
        for (i64 j = 0; j <= order; ++j) g[j] = 0.0;
        sweep(X, 0, n, t, spec, at, g, h, true, blend);
        ++report.sweeps;
    }

    // delta = -H^-1 gradient, with b = c - mu.w; returns the squared Newton decrement.
    double direction() {
        hessian(X, h, job.lam, job.intercept, mu, H, pack);
        ++report.grams;
        const double gb = job.intercept ? g[1 + d] : 0.0;
        for (i64 j = 0; j < d; ++j) rhs[j] = -(g[1 + j] + job.lam * theta[j] - mu[j] * gb);
        rhs[d] = -gb;
        chol.factor(H, job.lam == 0.0);
        chol.solve_refined(H, rhs, delta, res);
        double decrement = 0, most = 0, unseen = 0;
        for (i64 i = 0; i < order; ++i) {
            decrement += rhs[i] * delta[i];
            const double a = __builtin_fabs(rhs[i]);
            if (a > most) most = a;
            if (chol.scale[i] == 0.0 && a > unseen) unseen = a;
        }
        lost = unseen > 1e-12 * most;
        if (job.intercept) delta[d] -= dot_n(mu, delta, d);
        return decrement;
    }

    double slope_at(double step) {
        Chunk c;
        double s = job.lam * (dot_n(theta, delta, d) + step * dot_n(delta, delta, d));
        const LossOps loss = ops(spec.id);
        for (i64 r = 0; r < n; r += kMaxChunk) {
            const int nr = (int)min64(kMaxChunk, n - r);
            for (int i = 0; i < nr; ++i) c.m[i] = z[r + i] + step * dz[r + i];
            margins(c, t, r, nr);
            loss.at(padded(nr), spec.width, c.m, c.value, c.slope, c.curvature);
            for (int i = 0; i < nr; ++i) s += c.weight[i] * t.sign[r + i] * c.slope[i] * dz[r + i];
        }
        return s;
    }
    // Root of the derivative along the step in (0, 1): regula falsi (Illinois), which bisection guards.
    double exact_step() {
        for (i64 r = 0; r < n; r += X.chunk()) {
            const int nr = (int)min64(X.chunk(), n - r);
            X.dots(r, nr, theta, theta[d], z + r);
            X.dots(r, nr, delta, delta[d], dz + r);
        }
        double a = 0, b = 1, fa = slope_at(0), fb = slope_at(1);
        if (!(fa < 0)) return 0.0;
        if (!(fb > 0)) return fb <= 0 ? 1.0 : 0.5;
        for (int k = 0; k < 60 && b - a > 1e-12 * b; ++k) {
            double s = k % 3 == 2 ? 0.5 * (a + b) : (a * fb - b * fa) / (fb - fa);
            if (!(s > a && s < b)) s = 0.5 * (a + b);
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
        for (i64 r = 0; r < n; r += X.chunk()) {
            const int nr = (int)min64(X.chunk(), n - r);
            X.dots(r, nr, theta, theta[d], z + r);
            for (int i = 0; i < nr; ++i) {
                const double m = t.sign[r + i] * z[r + i] + (t.offset ? t.offset[r + i] : 0.0);
                if ((!t.weight || t.weight[r + i] > 0.0) && !(m >= least)) least = m;
            }
        }
        return least;
    }

    // Secant curvatures from the point `at` on, for `hold` steps: twice as many each time.
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

    // One step along delta, its length found by exact search when P would rise; false if P does not fall.
    bool advance(double decrement, bool tiny, double* length) {
        for (i64 j = 0; j < order; ++j) trial[j] = theta[j] + delta[j];
        value_and_gradient(trial);
        double next = g[0] + penalty(trial);
        *length = 1.0;
        if (!tiny && !(next <= P - 1e-4 * decrement)) {
            *length = exact_step();
            for (i64 j = 0; j < order; ++j) trial[j] = theta[j] + *length * delta[j];
            value_and_gradient(trial);
            next = g[0] + penalty(trial);
            if (!(next < P)) return false;
        }
        for (i64 j = 0; j < order; ++j) theta[j] = trial[j];
        P = next;
        return true;
    }

    bool closes(const double* base, const double* step, double* out) {
        for (i64 j = 0; j < 8 + 2 * d; ++j) out[j] = 0.0;
        closing(X, 0, n, t, spec, base, step, theta, nullptr, out);
        ++report.sweeps;
        double primal;
        return gap_of(out, d, job.lam, theta, job.intercept, &primal) <= job.tol * primal;
    }

    // status: 0 step limit, 1 gap <= tol, 2 working precision, 3 separable (theta separates), 4 not finite
    NewtonReport run(double* base, double* step, double* closing_out) {
        const bool bent = spec.id == LossId::huberised_hinge || spec.id == LossId::huber;
        const bool unbounded = job.lam == 0.0 && (spec.id == LossId::logistic || spec.id == LossId::exponential);
        // The gap after a step is about the square of its decrement, as shares of P: earlier closing passes are in vain.
        const double near = __builtin_sqrt(10.0 * job.tol) < 0.3 ? __builtin_sqrt(10.0 * job.tol) : 0.3;
        value_and_gradient(theta);
        P = g[0] + penalty(theta);
        bool certified = false, settled = false;  // settled: even secant steps have become tiny
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
            double length;
            if (!advance(decrement, tiny, &length)) {
                if (!bent || blend > 0.0 || settled) return finish(certified ? 1 : 2);
                to_secant(theta);
                continue;
            }
            if (unbounded && smallest_margin() > 0.0) return finish(3);
            if (blend > 0.0) {
                settled = tiny;
                if (++held >= hold || tiny) to_newton();
                continue;
            }
            if (job.lam == 0.0) {
                if (decrement <= 1e-18 * P || P == 0.0) return finish(2);
            } else if (decrement <= near * P) {
                certified = closes(base, step, closing_out);
                if (certified && (!job.polish || decrement <= 1e-12 * P)) return finish(1);
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

}  // namespace
}  // namespace linsep::LINSEP_ARCH
