// Passes over the rows of Mehrotra's predictor-corrector method for losses with one kink,
//
//     l(m) = max over lo <= u <= hi of u (kink - m):     hinge 0, 1, 1;   absolute -1, 1, centre;   perceptron 0, 1, 0.
//
// Problem  min lam/2 |w|^2 - c.theta + sum s l(m).  With v = m - kink each row has the central path
//
//     p - q = v,   p (u - lo) = mu,   q (hi - u) = mu,   lam w = c + sum s sign u x,   0 = c_b + sum s sign u.
//
// Newton's method on these: with a = u - lo, t = hi - u, D = 1/(p/a + q/t), x~ = (x, 1)
//
//     (lam I_w + sum s D x~x~') dtheta = c + sum s sign (u + D (mu (1/a - 1/t) - v - f)) x~ - lam w,
//     du = D (mu (1/a - 1/t) - v - dv - f),     dv = sign x~.dtheta,
//
// where f = du'(dp'/a + dq'/t) is the second-order term of the predictor du', dp', dq' (mu = f = 0). Weights s apply on
// the path too, so that weight 2 is equivalent to repeating the row; rows of weight 0 do not change.
//
// If that step is short, some products a p, t q would be far from mu at its end. Centrality correctors change only
// these: with w1, w2 the products after a longer step, r = lo - w below lo = mu/10, r = hi - w above hi = 10 mu
// (at least -hi), and r = 0 between, the additional direction is
//
//     (lam I_w + sum s D x~x~') dtheta = sum s sign D (r1/a - r2/t) x~,     du = D (r1/a - r2/t - dv).
//
// Mehrotra 1992; Gondzio, Multiple centrality corrections in a primal-dual method, 1996; Ferris and Munson 2003
// (support vector machines); Woodsend and Gondzio 2011.
#pragma once
#include "sums/sweep.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

// The interval of u, and the position of the kink.
struct Box {
    double lo, hi, kink;
    Box(LossSpec spec) : lo(spec.id == LossId::absolute ? -1.0 : 0.0), hi(1.0), kink(kink_of(spec)) {}
    double width() const { return hi - lo; }
};

// Numbers stored for each row between passes, in arrays `stride` numbers apart, beginning with row 0.
struct State {
    double *a, *t, *p, *q, *v, *dv, *du, *dp, *dq, *more;
    State(RowState s)
        : a(s.at),
          t(s.at + s.stride),
          p(s.at + 2 * s.stride),
          q(s.at + 3 * s.stride),
          v(s.at + 4 * s.stride),
          dv(s.at + 5 * s.stride),
          du(s.at + 6 * s.stride),
          dp(s.at + 7 * s.stride),
          dq(s.at + 8 * s.stride),
          more(s.at + 9 * s.stride) {}
};

// Load and store up to VL numbers; missing lanes are loaded as `other` and not stored.
inline vd load_some(const double* p, int k, double other) {
    if (k >= VL) return load(p);
    double b[VL];
    for (int i = 0; i < VL; ++i) b[i] = i < k ? p[i] : other;
    return load(b);
}
inline void store_some(double* p, vd v, int k) {
    if (k >= VL) return store(p, v);
    double b[VL];
    store(b, v);
    for (int i = 0; i < k; ++i) p[i] = b[i];
}
inline double largest(vd v) {
    double b[VL], most;
    store(b, v);
    most = b[0];
    for (int i = 1; i < VL; ++i)
        if (!(b[i] <= most)) most = b[i];  // a NaN is the maximum
    return most;
}
inline vd weights(const Targets& t, i64 i, int k) {
    return t.weight ? load_some(t.weight + i, k, 0.0) : select(load_some(t.sign + i, k, 0.0) != 0.0, splat(1.0), vd{});
}

// v = sign z + offset - kink for rows r .. r + nr, from their scores.
inline void beyond(const Targets& t, double kink, i64 r, int nr, const double* z, double* v) {
    for (int i = 0; i < nr; ++i) v[i] = t.sign[r + i] * z[i] + (t.offset ? t.offset[r + i] : 0.0) - kink;
}

// v of rows [lo, hi) at theta; out[0] += sum s l.
template <class R>
void kink_margins(const R& X, i64 lo, i64 hi, const Targets& t, Box box, const double* theta, double* v, double* out) {
    double z[kRoom];
    for (i64 r = lo; r < hi; r += X.chunk()) {
        const int nr = (int)min64(X.chunk(), hi - r);
        X.dots(r, nr, theta, theta[X.d], z);
        beyond(t, box.kink, r, nr, z, v + r);
        vd sum{};
        for (int i = 0; i < nr; i += VL) {
            const vd vv = load_some(v + r + i, nr - i, 0.0);
            sum += weights(t, r + i, nr - i) * vmax(-box.lo * vv, -box.hi * vv);
        }
        out[0] += total(sum);
    }
}

// Classify the rows at theta for sifting: compute v, and set u = lo or hi where |v| > tau q, and u = hi + 1
// (outside the box) for the remaining rows, the band around the kink. q^2 = 1 + sum_j scale_j (x_j - mu_j)^2, because
// an error of theta changes the margins of rows far from the mean more. Rows of weight 0 get u = lo. out: sum s l; then
// sum s u (kink - offset) and sum s sign u x~ [d + 1] over the rows outside the band; then the same two sums over the
// band, with u at the bound on the side of each row.
template <class R>
void sort_rows(const R& X, i64 lo, i64 hi, const Targets& t, Box box, const double* theta, double tau, const double* mu,
               const double* scale, double* v, double* u, double* out) {
    double z[kRoom], push[kRoom], pull[kRoom];
    int list[kRoom];
    const i64 size = X.d + 2;
    for (i64 r = lo; r < hi; r += X.chunk()) {
        const int nr = (int)min64(X.chunk(), hi - r);
        X.dots(r, nr, theta, theta[X.d], z);
        beyond(t, box.kink, r, nr, z, v + r);
        double loss = 0, constant[2] = {0, 0}, sum[2] = {0, 0};
        for (int i = 0; i < nr; ++i) {
            const i64 k = r + i;
            const double w = t.weight ? t.weight[k] : 1.0, far = v[k];
            const bool band = w > 0.0 && !(far * far > tau * tau * (1.0 + X.spread(k, mu, scale)));
            const double at = w > 0.0 && far < 0.0 ? box.hi : box.lo;
            u[k] = band ? box.hi + 1.0 : at;
            const double mass = w * at, signed_mass = mass * t.sign[k];
            loss += w * (far < 0.0 ? -box.hi * far : -box.lo * far);
            constant[band] += mass * (box.kink - (t.offset ? t.offset[k] : 0.0));
            sum[band] += signed_mass;
            push[i] = band ? 0.0 : signed_mass;
            pull[i] = band ? signed_mass : 0.0;
        }
        out[0] += loss;
        for (int part = 0; part < 2; ++part) {
            double* to = out + 1 + part * size;
            double* by = part ? pull : push;
            to[0] += constant[part];
            to[1 + X.d] += sum[part];
            X.add(r, list, keep_nonzero(by, nr, list), by, to + 1);
        }
    }
}

// The point of the central path for mu, for rows whose v is given:
// p = (2 mu + vW + R)/(2W), q = (2 mu - vW + R)/(2W), R^2 = 4 mu^2 + v^2 W^2, without cancellation.
inline void ipm_central(i64 lo, i64 hi, Box box, double mu, State s) {
    const double width = box.width();
    for (i64 i = lo; i < hi; ++i) {
        const double far = __builtin_fabs(s.v[i]) * width;
        const double root = __builtin_sqrt(4.0 * mu * mu + far * far);
        const double large = (2.0 * mu + far + root) / (2.0 * width),
                     small = mu * (1.0 + 2.0 * mu / (root + far)) / width;
        const bool above = s.v[i] >= 0.0;
        s.p[i] = above ? large : small;
        s.q[i] = above ? small : large;
        s.a[i] = mu / s.p[i];
        s.t[i] = mu / s.q[i];
    }
}

// Take a step of size `step`, then compute the sums of an iteration; h gets s D.
// out: loss, slack, complement, then sum s sign u x~ [d + 1], then sum s sign D v x~ [d + 1], where
// slack = sum s (l(m) - u (kink - m)), no term of which is negative; complement = sum s (a p + t q).
template <class R>
void ipm_gather(const R& X, i64 lo, i64 hi, const Targets& tg, Box box, double step, State s, double* h, double* out) {
    const i64 order = X.d + 1;
    double push[kRoom], pull[kRoom];
    int list[kRoom];
    for (i64 r = lo; r < hi; r += X.chunk()) {
        const int nr = (int)min64(X.chunk(), hi - r);
        vd loss{}, slack{}, both{}, e{}, f{};
        for (int i = 0; i < nr; i += VL) {
            const i64 k = r + i;
            const int left = nr - i;
            vd a = load_some(s.a + k, left, 1.0), t = load_some(s.t + k, left, 1.0);
            vd p = load_some(s.p + k, left, 1.0), q = load_some(s.q + k, left, 1.0), v = load_some(s.v + k, left, 0.0);
            if (step > 0.0) {
                const vd du = step * load_some(s.du + k, left, 0.0);
                store_some(s.a + k, a += du, left);
                store_some(s.t + k, t -= du, left);
                store_some(s.p + k, p += step * load_some(s.dp + k, left, 0.0), left);
                store_some(s.q + k, q += step * load_some(s.dq + k, left, 0.0), left);
                store_some(s.v + k, v += step * load_some(s.dv + k, left, 0.0), left);
            }
            const vd w = weights(tg, k, left), mass = w * load_some(tg.sign + k, left, 0.0);
            const vd D = a * t / (p * t + q * a);
            store_some(h + k, w * D, left);
            loss += w * vmax(-box.lo * v, -box.hi * v);
            slack += w * (t * vmax(-v, vd{}) + a * vmax(v, vd{}));
            both += w * (a * p + t * q);
            const vd one = mass * select(a < t, box.lo + a, box.hi - t), two = mass * D * v;
            e += one;
            f += two;
            store(push + i, one);
            store(pull + i, two);
        }
        out[0] += total(loss);
        out[1] += total(slack);
        out[2] += total(both);
        out[3 + X.d] += total(e);
        out[3 + order + X.d] += total(f);
        X.add(r, list, keep_nonzero(push, nr, list), push, out + 3);
        X.add(r, list, keep_nonzero(pull, nr, list), pull, out + 3 + order);
    }
}

// The predictor. out: sum s du (dp - dq), then sum s sign D (1/a - 1/t) x~ and -sum s sign D f x~ [d + 1 each].
// Returns r such that 1/r is the step to the boundary.
template <class R>
double ipm_predict(const R& X, i64 lo, i64 hi, const Targets& tg, const double* dtheta, State s, double* out) {
    const i64 order = X.d + 1;
    double dz[kRoom], push[kRoom], pull[kRoom];
    int list[kRoom];
    vd far{};
    for (i64 r = lo; r < hi; r += X.chunk()) {
        const int nr = (int)min64(X.chunk(), hi - r);
        X.dots(r, nr, dtheta, dtheta[X.d], dz);
        vd sum{}, e{}, f{};
        for (int i = 0; i < nr; i += VL) {
            const i64 k = r + i;
            const int left = nr - i;
            const vd a = load_some(s.a + k, left, 1.0), t = load_some(s.t + k, left, 1.0);
            const vd p = load_some(s.p + k, left, 1.0), q = load_some(s.q + k, left, 1.0);
            const vd sign = load_some(tg.sign + k, left, 0.0), w = weights(tg, k, left), mass = w * sign;
            const vd v = load_some(s.v + k, left, 0.0) + sign * load_some(dz + i, left, 0.0);
            const vd inverse = 1.0 / (p * t + q * a);
            const vd du = select(w > 0.0, -a * t * v * inverse, vd{});
            const vd ra = du / a, rt = du / t;
            const vd dp = -p * (1.0 + ra), dq = q * (rt - 1.0);
            far = vmax(far, select(w > 0.0, vmax(vmax(1.0 + ra, -ra), vmax(1.0 - rt, rt)), vd{}));
            sum += w * du * (dp - dq);
            const vd one = mass * (t - a) * inverse, two = -mass * du * (dp * t + dq * a) * inverse;
            e += one;
            f += two;
            store(push + i, one);
            store(pull + i, two);
            store_some(s.du + k, du, left);
        }
        out[0] += total(sum);
        out[1 + X.d] += total(e);
        out[1 + order + X.d] += total(f);
        X.add(r, list, keep_nonzero(push, nr, list), push, out + 1);
        X.add(r, list, keep_nonzero(pull, nr, list), pull, out + 1 + order);
    }
    return largest(far);
}

// The corrected direction towards mu; ipm_gather takes the step. Returns r such that 1/r is the step to the boundary.
template <class R>
double ipm_correct(const R& X, i64 lo, i64 hi, const Targets& tg, const double* dtheta, double mu, State s) {
    double dz[kRoom];
    vd far{};
    for (i64 r = lo; r < hi; r += X.chunk()) {
        const int nr = (int)min64(X.chunk(), hi - r);
        X.dots(r, nr, dtheta, dtheta[X.d], dz);
        for (int i = 0; i < nr; i += VL) {
            const i64 k = r + i;
            const int left = nr - i;
            const vd a = load_some(s.a + k, left, 1.0), t = load_some(s.t + k, left, 1.0);
            const vd p = load_some(s.p + k, left, 1.0), q = load_some(s.q + k, left, 1.0);
            const vd sign = load_some(tg.sign + k, left, 0.0), before = load_some(s.du + k, left, 0.0);
            const vi live = weights(tg, k, left) > 0.0;
            const vd dv = sign * load_some(dz + i, left, 0.0), v = load_some(s.v + k, left, 0.0) + dv;
            const vd ia = 1.0 / a, it = 1.0 / t;
            const vd fp = -p * (1.0 + before * ia) * before, fq = q * (before * it - 1.0) * before;
            vd du = (mu * (t - a) - a * t * v - (fp * t + fq * a)) / (p * t + q * a);
            vd dp = (mu - fp - p * du) * ia - p, dq = (mu + fq + q * du) * it - q;
            du = select(live, du, vd{});
            dp = select(live, dp, vd{});
            dq = select(live, dq, vd{});
            far = vmax(vmax(far, vmax(du * it, -du * ia)), vmax(-dp / p, -dq / q));
            store_some(s.dv + k, dv, left);
            store_some(s.du + k, du, left);
            store_some(s.dp + k, dp, left);
            store_some(s.dq + k, dq, left);
        }
    }
    return largest(far);
}

// Targets r1 and r2 of a centrality corrector for a row, and p t + q a.
struct Deviation {
    vd r1, r2, both;
};
inline vd towards(vd w, double mu) {
    const double low = 0.1 * mu, high = 10.0 * mu;
    return vmax(select(w < low, low - w, select(w > high, high - w, vd{})), splat(-high));
}
inline Deviation deviation(State s, i64 k, int left, double step, double mu) {
    const vd a = load_some(s.a + k, left, 1.0), t = load_some(s.t + k, left, 1.0);
    const vd p = load_some(s.p + k, left, 1.0), q = load_some(s.q + k, left, 1.0);
    const vd du = step * load_some(s.du + k, left, 0.0);
    const vd dp = step * load_some(s.dp + k, left, 0.0), dq = step * load_some(s.dq + k, left, 0.0);
    return {towards((a + du) * (p + dp), mu), towards((t - du) * (q + dq), mu), p * t + q * a};
}

// Right-hand side of a centrality corrector for a step of size `step`: out += sum s sign D (r1/a - r2/t) x~.
template <class R>
void ipm_recentre(const R& X, i64 lo, i64 hi, const Targets& tg, double step, double mu, State s, double* out) {
    double push[kRoom];
    int list[kRoom];
    for (i64 r = lo; r < hi; r += X.chunk()) {
        const int nr = (int)min64(X.chunk(), hi - r);
        vd sum{};
        for (int i = 0; i < nr; i += VL) {
            const i64 k = r + i;
            const int left = nr - i;
            const Deviation x = deviation(s, k, left, step, mu);
            const vd a = load_some(s.a + k, left, 1.0), t = load_some(s.t + k, left, 1.0);
            const vd one = weights(tg, k, left) * load_some(tg.sign + k, left, 0.0) * (x.r1 * t - x.r2 * a) / x.both;
            sum += one;
            store(push + i, one);
        }
        out[X.d] += total(sum);
        X.add(r, list, keep_nonzero(push, nr, list), push, out);
    }
}

// Add a centrality corrector to the direction on trial. ipm_attempt returns r such that 1/r is the step to the
// boundary, and stores only dv; ipm_adopt replaces the direction.
struct Moved {
    vd du, dp, dq;
};
inline Moved corrected_step(const Targets& tg, State s, i64 k, int left, double step, double mu) {
    const Deviation x = deviation(s, k, left, step, mu);
    const vd a = load_some(s.a + k, left, 1.0), t = load_some(s.t + k, left, 1.0);
    const vd p = load_some(s.p + k, left, 1.0), q = load_some(s.q + k, left, 1.0);
    const vi live = weights(tg, k, left) > 0.0;
    const vd dv = load_some(s.more + k, left, 0.0);
    const vd du = (x.r1 * t - x.r2 * a - a * t * dv) / x.both;
    return {load_some(s.du + k, left, 0.0) + select(live, du, vd{}),
            load_some(s.dp + k, left, 0.0) + select(live, (x.r1 - p * du) / a, vd{}),
            load_some(s.dq + k, left, 0.0) + select(live, (x.r2 + q * du) / t, vd{})};
}
template <class R>
double ipm_attempt(const R& X, i64 lo, i64 hi, const Targets& tg, const double* dtheta, double step, double mu,
                   State s) {
    double dz[kRoom];
    vd far{};
    for (i64 r = lo; r < hi; r += X.chunk()) {
        const int nr = (int)min64(X.chunk(), hi - r);
        X.dots(r, nr, dtheta, dtheta[X.d], dz);
        for (int i = 0; i < nr; i += VL) {
            const i64 k = r + i;
            const int left = nr - i;
            store_some(s.more + k, load_some(tg.sign + k, left, 0.0) * load_some(dz + i, left, 0.0), left);
            const Moved d = corrected_step(tg, s, k, left, step, mu);
            const vd a = load_some(s.a + k, left, 1.0), t = load_some(s.t + k, left, 1.0);
            const vd p = load_some(s.p + k, left, 1.0), q = load_some(s.q + k, left, 1.0);
            far = vmax(vmax(far, vmax(d.du / t, -d.du / a)), vmax(-d.dp / p, -d.dq / q));
        }
    }
    return largest(far);
}
inline void ipm_adopt(i64 lo, i64 hi, const Targets& tg, double step, double mu, State s) {
    for (i64 k = lo; k < hi; k += VL) {
        const int left = (int)min64(VL, hi - k);
        const Moved d = corrected_step(tg, s, k, left, step, mu);
        store_some(s.du + k, d.du, left);
        store_some(s.dp + k, d.dp, left);
        store_some(s.dq + k, d.dq, left);
        store_some(s.dv + k, load_some(s.dv + k, left, 0.0) + load_some(s.more + k, left, 0.0), left);
    }
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
