// The closing pass: all sums of a certificate (src/linsep/certificates/closing.py), in one pass over X.
//
// Problem  P(theta) = lam/2 |w|^2 + sum s l(m),  dual  D(u) = -sum s (l*(-u) + u offset) - |v|^2/(2 lam),
// v = sum s sign u x. The dual point is either given or linearised: for a base point with margins m0 and a step that
// changes the scores by dz, u = -(l'(m0) + l''(m0) sign dz). By the Newton equations, v is then lam (w0 + dw) up to the
// residual of the linear solve, so that the gap is the Fenchel-Young slack of the losses alone. Where this u lies
// outside the domain of the conjugate, u = -l'(m) at theta replaces it.
//
// This file shares only the row and loss primitives with the passes of the solvers; `linsep.verify` recomputes
// everything in numpy and shares no code.
//
// out: loss, conj+, conj-, mass+, mass-, magnitude, absolute, spread, v+ [d], v- [d];  +/- is the sign of sign*u.
//   The last three of the header bound the rounding errors (src/linsep/certificates/closing.py derives how):
//   magnitude = sum s t (|x|.|w| + |b| + |offset|), where t is the larger of |u| and the largest |slope| within the
//   rounding error of the margin, and |w0| + |dw| replaces |w| after a step; absolute = sum of |terms|;
//   spread = sum s |u| |x|. Each row also adds a tiny constant to all of them, which covers underflow.
#pragma once
#include "sums/sweep.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

// Dual variables below kTiny are set to 0. Underflow changes a product by at most 2^-1074, and the norm of a row by at
// most 2^-537 sqrt(d); kTiny and kTinyNorm times the unit roundoff are far larger.
constexpr double kTiny = 0x1p-960, kTinyNorm = 0x1p-500;

struct ClosingChunk {
    double sign[kRoom], offset[kRoom], weight[kRoom], q[kRoom], square[kRoom], error[kRoom], steepest[kRoom];
    double m0[kRoom], dz[kRoom], m1[kRoom], u[kRoom], conj[kRoom], inside[kRoom], mass[kRoom];
    double value1[kRoom], slope[kRoom], curvature[kRoom];
    double a[2][kRoom];
    int list[2][kRoom];
};

// Turn scores into margins; padding lanes have weight 0. On return, q is the sum of the magnitudes of a margin's terms,
// and `error` a bound on the rounding error of the margin.
inline void open_margins(ClosingChunk& c, const Targets& t, i64 r, int nr, i64 d, bool moved) {
    const int np = padded(nr);
    const double score_error = (double)(d + 16) * 0x1p-53;
    for (int i = 0; i < nr; ++i) c.sign[i] = t.sign[r + i];
    for (int i = 0; i < nr; ++i) c.offset[i] = t.offset ? t.offset[r + i] : 0.0;
    for (int i = 0; i < nr; ++i) c.weight[i] = t.weight ? t.weight[r + i] : 1.0;
    for (int i = nr; i < np; ++i)
        c.sign[i] = c.offset[i] = c.weight[i] = c.m0[i] = c.dz[i] = c.m1[i] = c.q[i] = c.square[i] = 0.0;
    for (int i = 0; i < np; i += VL) {
        const vd q = load(c.q + i) + vabs(load(c.offset + i)) + kTiny;
        store(c.q + i, q);
        store(c.error + i, score_error * q);
        store(c.m1 + i, load(c.sign + i) * load(c.m1 + i) + load(c.offset + i));
    }
    if (!moved) return;
    for (int i = 0; i < np; i += VL) {
        store(c.m0 + i, load(c.sign + i) * load(c.m0 + i) + load(c.offset + i));
        store(c.dz + i, load(c.sign + i) * load(c.dz + i));
    }
}

// Make the dual point feasible and compute its conjugates: replace an infeasible u by -l'(m) at theta, and by 0, which
// is feasible for every loss, if that is infeasible too or if u or s u may underflow.
inline void feasible(ClosingChunk& c, const LossOps& loss, LossSpec spec, int nr) {
    const int np = padded(nr);
    const auto bad = [&](int i) { return c.inside[i] == 0.0 || !(c.conj[i] - c.conj[i] == 0.0); };
    const auto tiny = [](double u, double s) { return __builtin_fabs(u) < kTiny || __builtin_fabs(u) * s < kTiny; };
    for (int i = 0; i < np; ++i) c.u[i] = tiny(c.u[i], c.weight[i]) ? 0.0 : c.u[i];
    loss.conjugate(np, spec.shape, c.u, c.conj, c.inside);
    int outside = 0;
    for (int i = 0; i < nr; ++i) outside += bad(i);
    if (!outside) return;
    loss.derivatives(np, spec.shape, c.m1, c.slope, c.curvature);
    for (int i = 0; i < nr; ++i)
        if (bad(i)) c.u[i] = tiny(c.slope[i], c.weight[i]) ? 0.0 : -c.slope[i];
    loss.conjugate(np, spec.shape, c.u, c.conj, c.inside);
    for (int i = 0; i < nr; ++i)
        if (bad(i)) c.u[i] = 0.0;
    loss.conjugate(np, spec.shape, c.u, c.conj, c.inside);
}

// Split the chunk by the sign of s*sign*u and add each side to its own sums.
template <class R>
void add_sides(const R& X, ClosingChunk& c, i64 r, int nr, double* out) {
    vd sum[2] = {}, size[2] = {}, loss{}, magnitude{}, absolute{}, spread{};
    for (int i = 0; i < nr; i += VL) {
        const vd s = load(c.weight + i), u = load(c.u + i), conj = load(c.conj + i);
        const vi live = s > 0.0;  // a row of weight 0 is ignored, even if its loss is infinite
        const vd value = select(live, load(c.value1 + i), vd{}), shift = u * load(c.offset + i);
        const vd mass = s * load(c.sign + i) * u, both = s * (conj + shift), amount = vabs(mass);
        const vi minus = mass < 0.0;
        sum[0] += select(minus, vd{}, both);
        sum[1] += select(minus, both, vd{});
        size[0] += select(minus, vd{}, amount);
        size[1] += select(minus, amount, vd{});
        magnitude += select(live, s * vmax(vabs(u), load(c.steepest + i)) * load(c.q + i), vd{});
        absolute += s * (value + vabs(conj) + vabs(shift) + kTiny) + kTiny;
        spread += select(live, amount * (vsqrt(load(c.square + i)) + kTinyNorm), vd{}) + kTiny;
        loss += s * value;
        store(c.mass + i, mass);
    }
    int plus = 0, minus = 0;
    for (int i = 0; i < nr; ++i) {
        const double mass = c.mass[i];
        c.a[0][plus] = c.a[1][minus] = mass;
        c.list[0][plus] = c.list[1][minus] = i;
        plus += mass > 0.0 || mass != mass;
        minus += mass < 0.0;
    }
    out[0] += total(loss);
    for (int side = 0; side < 2; ++side) {
        out[1 + side] += total(sum[side]);
        out[3 + side] += total(size[side]);
    }
    out[5] += total(magnitude);
    out[6] += total(absolute);
    out[7] += total(spread);
    X.add(r, c.list[0], plus, c.a[0], out + 8);
    X.add(r, c.list[1], minus, c.a[1], out + 8 + X.d);
}

// `scratch` has d + 1 numbers, and may be null if a dual point is given. The feasible dual point is written to `found`
// unless null.
template <class R>
void closing(const R& X, i64 lo, i64 hi, const Targets& t, LossSpec spec, const double* base, const double* step,
             const double* theta, const double* dual, double* out, double* scratch, double* found = nullptr) {
    const LossOps loss = ops(spec.id);
    ClosingChunk c;
    // still: no step, the dual point is -l'(m) at theta; unit: theta is the end of the step
    bool still = true, unit = true;
    for (i64 j = 0; !dual && j <= X.d; ++j) {
        still = still && base[j] == theta[j] && step[j] == 0.0;
        unit = unit && base[j] + step[j] == theta[j];
        scratch[j] = __builtin_fabs(base[j]) + __builtin_fabs(step[j]);
    }
    const bool moved = !dual && !still;
    for (i64 r = lo; r < hi; r += X.chunk()) {
        const int nr = (int)min64(X.chunk(), hi - r), np = padded(nr);
        if (moved) X.scores_and_steps(r, nr, base, step, scratch, c.m0, c.dz, c.q, c.square);
        if (moved && unit)
            for (int i = 0; i < nr; ++i) c.m1[i] = c.m0[i] + c.dz[i];
        else
            X.scores_and_sizes(r, nr, theta, c.m1, c.q, c.square);
        open_margins(c, t, r, nr, X.d, moved);
        loss.enclose(np, spec.shape, c.m1, c.error, c.value1, c.steepest);
        if (dual) {
            for (int i = 0; i < nr; ++i) c.u[i] = dual[r + i];
            for (int i = nr; i < np; ++i) c.u[i] = 0.0;
        } else if (still) {
            loss.derivatives(np, spec.shape, c.m1, c.slope, c.curvature);
            for (int i = 0; i < np; i += VL) store(c.u + i, -load(c.slope + i));
        } else {
            loss.derivatives(np, spec.shape, c.m0, c.slope, c.curvature);
            for (int i = 0; i < np; i += VL)
                store(c.u + i, -(load(c.slope + i) + load(c.curvature + i) * load(c.dz + i)));
        }
        feasible(c, loss, spec, nr);
        if (found)
            for (int i = 0; i < nr; ++i) found[r + i] = c.u[i];
        add_sides(X, c, r, nr, out);
    }
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
