// Crossover from a point near the optimum to the exact solution, for losses with one kink
// (interior/passes.hpp states the problem).
//
// Rows are assumed to be free (v = 0, u inside the box) or fixed (u at a bound). The equations of this assumption,
//
//     lam w = c + sum s sign u x,   c_b + sum s sign u = 0,   v = 0 on the free rows F,
//
// are solved by the method of multipliers (Hestenes 1969, Powell 1969): with H = lam I_w + rho sum_F s x~x~',
//
//     theta += H^-1 (c + sum s sign u x~ - lam w - rho sum_F s sign v x~),     u_F -= rho v_F.
//
// Stationarity then holds at every step, and v_F shrinks by a factor of about lam / rho|x|^2 each time, even if free
// rows are linearly dependent. Wrong assumptions are corrected as in an active set method: if u would leave the box, it
// moves until the first row blocks, and that row becomes fixed; if fixed rows are on the wrong side, the worst one
// becomes free. Without a penalty there may be no theta with v = 0 on all free rows. The steps then no longer change
// theta, and u moves along sum s sign v x~ = 0: this is feasible and increases the dual until the first row blocks.
#pragma once
#include "interior/passes.hpp"
#include "newton/fit.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

struct Crossover {
    const AnyRows& X;
    Targets t;
    Box box;
    double lam;
    bool intercept;
    const double* c;  // linear term [d + 1], or null
    double *theta, *u, *v, *h, *before, *base, *g, *delta, *res, *mu, *H, *pack;
    double* some;  // numbers for the listed rows
    i64* list;
    Cholesky chol;
    double farthest = 0;  // largest distance of a margin from the kink
    int grams = 0, sweeps = 0;

    Crossover(const AnyRows& rows, Targets targets, Box b, double l, bool icpt, const double* linear, double* th,
              double* dual, double* margins, Arena* arena)
        : X(rows), t(targets), box(b), lam(l), intercept(icpt), c(linear), theta(th), u(dual), v(margins) {
        const i64 order = X.d + 1;
        h = arena->take(X.n);
        before = arena->take(X.n);
        some = arena->take(X.n);
        list = arena->take_ids(X.n);
        base = arena->take(order + 8);
        g = arena->take(order + 8);
        delta = arena->take(order + 8);
        res = arena->take(order + 8);
        mu = arena->take(order + 8);
        chol.scale = arena->take(order + 8);
        H = arena->take(order, order);
        chol.U = arena->take(order, order);
        chol.n = order;
        pack = arena->take(gram_scratch(X.rows));
    }

    double weight(i64 i) const { return t.weight ? t.weight[i] : 1.0; }

    // Assume that a row is free if it is nearer to the kink than to the bounds of the box, in relative distances.
    void guess() {
        double& most = farthest;
        for (i64 i = 0; i < X.n; ++i)
            if (weight(i) > 0.0 && __builtin_fabs(v[i]) > most) most = __builtin_fabs(v[i]);
        for (i64 i = 0; i < X.n; ++i) {
            const double a = u[i] - box.lo, b = box.hi - u[i], inside = (a < b ? a : b) / box.width();
            const bool free = weight(i) > 0.0 && inside * most > __builtin_fabs(v[i]);
            h[i] = free ? weight(i) : 0.0;
            if (!free) u[i] = v[i] > 0.0 ? box.lo : v[i] < 0.0 ? box.hi : a < b ? box.lo : box.hi;
        }
    }

    // Factor H for the free rows; return false if there are none.
    bool factor(double* rho) {
        double mass = 0, trace = 0;
        for (i64 i = 0; i < X.n; ++i) mass += h[i];
        const i64 d = X.d, order = d + 1;
        if (!(mass > 0.0)) return false;
        hessian(X, h, 0.0, intercept, mu, H, pack);
        ++grams;
        for (i64 j = 0; j < d; ++j) trace += H[j * order + j];
        const double size = trace > 0.0 ? trace / mass : 1.0;
        // Without a penalty, two steps suffice for any rho; this one gives v and u similar relative changes.
        *rho = lam > 0.0 ? 1e5 * lam / size : farthest > 0.0 ? 1.0 / farthest : 1.0;
        for (i64 j = 0; j < order * order; ++j) H[j] *= *rho;
        for (i64 j = 0; j < d; ++j) H[j * order + j] += lam;
        chol.factor(H, lam == 0.0);
        return true;
    }

    // to += sum of some[k] x~ over the listed rows
    void add_list(i64 count, double* to) {
        X.list_add(list, count, some, to);
        for (i64 k = 0; k < count; ++k) to[X.d] += some[k];
    }
    double mass(i64 k) const { return weight(k) * t.sign[k] * u[k]; }
    // base += times * s sign u x~ of row k
    void shift_base(i64 k, double times) {
        some[0] = times * mass(k), list[0] = k;
        add_list(1, base);
    }

    // One step of the method of multipliers, which reads only the free rows. Returns the largest change of u.
    double multiply(double rho) {
        const i64 d = X.d, order = d + 1;
        for (i64 j = 0; j < order; ++j) g[j] = base[j] - (j < d ? lam * theta[j] : 0.0);
        i64 count = 0;
        for (i64 k = 0; k < X.n; ++k)
            if (h[k] > 0.0) some[count] = h[k] * t.sign[k] * (u[k] - rho * v[k]), list[count++] = k;
        add_list(count, g);
        if (!intercept) g[d] = 0.0;
        for (i64 j = 0; j < d; ++j) g[j] -= mu[j] * g[d];
        chol.solve_refined(H, g, delta, res);
        if (intercept) delta[d] -= dot_n(mu, delta, d);
        for (i64 j = 0; j < order; ++j) theta[j] += delta[j];
        double most = 0;
        X.list_dots(list, count, theta, some);
        for (i64 a = 0; a < count; ++a) {
            const i64 k = list[a];
            v[k] = t.sign[k] * (some[a] + theta[d]) + (t.offset ? t.offset[k] : 0.0) - box.kink;
            const double change = rho * v[k];
            u[k] -= change;
            if (!(__builtin_fabs(change) <= most)) most = __builtin_fabs(change);
        }
        return most;
    }

    // If u has left the box, return to the point where the first row left it, fix that row there, and return true.
    bool stop_at_box() {
        double length = 1.0;
        i64 first = -1;
        for (i64 k = 0; k < X.n; ++k) {
            if (!(h[k] > 0.0) || (u[k] >= box.lo - 1e-12 && u[k] <= box.hi + 1e-12)) continue;
            const double end = u[k] < box.lo ? box.lo : box.hi, part = (end - before[k]) / (u[k] - before[k]);
            if (first < 0 || part < length) length = part, first = k;
        }
        if (first < 0) return false;
        if (length < 0.0) length = 0.0;
        const double end = u[first] < box.lo ? box.lo : box.hi;
        for (i64 k = 0; k < X.n; ++k)
            if (h[k] > 0.0) u[k] = before[k] + length * (u[k] - before[k]);
        u[first] = end;
        h[first] = 0.0;
        shift_base(first, 1.0);
        return true;
    }

    // If u is in the box, move it along -v until some row leaves the box.
    void drift() {
        double most = 0;
        for (i64 k = 0; k < X.n; ++k) {
            if (!(h[k] > 0.0)) continue;
            if (u[k] < box.lo - 1e-12 || u[k] > box.hi + 1e-12) return;
            if (__builtin_fabs(v[k]) > most) most = __builtin_fabs(v[k]);
        }
        if (!(most > 1e-10 * farthest)) return;  // rounding error
        const double far = 3.0 * box.width() / most;
        for (i64 k = 0; k < X.n; ++k) {
            if (!(h[k] > 0.0)) continue;
            before[k] = u[k];
            u[k] -= far * v[k];
        }
    }

    // Recompute the margins of all rows and free the fixed row that is farthest on the wrong side; return whether there
    // is one.
    bool free_worst_row() {
        double z[kRoom], most = 0;
        for (i64 r = 0; r < X.n; r += kMaxChunk) {
            const int nr = (int)min64(kMaxChunk, X.n - r);
            X.dots(r, nr, theta, z);
            beyond(t, box.kink, r, nr, z, v + r);
        }
        ++sweeps;
        for (i64 i = 0; i < X.n; ++i)
            if (weight(i) > 0.0 && __builtin_fabs(v[i]) > most) most = __builtin_fabs(v[i]);
        double wrong_by = 1e-11 * most;
        i64 wrong = -1;
        for (i64 i = 0; i < X.n; ++i) {
            if (h[i] > 0.0 || !(weight(i) > 0.0)) continue;
            const double by = u[i] == box.lo ? -v[i] : v[i];
            if (by > wrong_by) wrong_by = by, wrong = i;
        }
        if (wrong < 0) return false;
        shift_base(wrong, -1.0);
        h[wrong] = weight(wrong);
        return true;
    }

    // Return whether the exact solution was found. v must hold the margins at theta.
    bool run(int rounds) {
        guess();
        for (i64 j = 0; j <= X.d; ++j) base[j] = c ? c[j] : 0.0;
        i64 fixed = 0;
        for (i64 k = 0; k < X.n; ++k)
            if (!(h[k] > 0.0) && u[k] != 0.0 && weight(k) > 0.0) some[fixed] = mass(k), list[fixed++] = k;
        add_list(fixed, base);
        ++sweeps;
        for (int k = 0; k < rounds; ++k) {
            poll();
            double rho = 1.0, change = 1.0, last = __builtin_inf();
            if (!factor(&rho)) return false;
            for (i64 i = 0; i < X.n; ++i) before[i] = u[i];
            for (int q = 0; q < 12 && change > 1e-13; ++q, last = change) {
                poll();
                change = multiply(rho);
                if (!(change <= 1e12)) return false;
                if (q > 1 && change > 0.5 * last) {  // no theta has v = 0 on all free rows
                    if (lam == 0.0) drift();
                    break;
                }
            }
            if (!stop_at_box() && !free_worst_row()) return change <= 1e-6;
        }
        return false;
    }
};

// Change u to lie in the box and to satisfy sum s sign u = 0, by moving each row in proportion to its distance from the
// nearer bound; if that is not enough, the side with the larger mass is scaled down (0 is in every box).
inline void make_feasible(i64 n, const Targets& t, Box box, bool intercept, double* u) {
    for (i64 i = 0; i < n; ++i) u[i] = u[i] < box.lo ? box.lo : u[i] > box.hi ? box.hi : u[i];
    for (int k = 0; intercept && k < 4; ++k) {
        double side[2] = {0, 0}, room = 0;
        for (i64 i = 0; i < n; ++i) {
            const double s = t.weight ? t.weight[i] : 1.0, a = u[i] - box.lo, b = box.hi - u[i];
            const double mass = s * t.sign[i] * u[i];
            side[mass < 0.0] += __builtin_fabs(mass);
            room += s * (a < b ? a : b);
        }
        const double e = side[0] - side[1];
        if (e == 0.0) return;
        const bool shrink = !(__builtin_fabs(e) <= room);
        const double share = e / room, factor = e > 0.0 ? side[1] / side[0] : side[0] / side[1];
        for (i64 i = 0; i < n; ++i) {
            if (shrink) {
                if ((t.sign[i] * u[i] > 0.0) == (e > 0.0)) u[i] *= factor;
                continue;
            }
            const double a = u[i] - box.lo, b = box.hi - u[i];
            const double moved = u[i] - t.sign[i] * share * (a < b ? a : b);
            u[i] = moved < box.lo ? box.lo : moved > box.hi ? box.hi : moved;
        }
    }
}

// Run the crossover; return whether the exact solution was found.
inline bool crossover(const AnyRows& X, Targets t, LossSpec spec, double lam, bool intercept, const double* linear,
                      int rounds, double* theta, double* u, double* v, Arena* arena) {
    Crossover over(X, t, Box(spec), lam, intercept, linear, theta, u, v, arena);
    return !arena->counts() && over.run(rounds);
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
