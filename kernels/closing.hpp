// The closing pass: the sums from which a certificate is assembled (src/linsep/certificates/closing.py), in one read of X.
//
// Problem  P(theta) = lam/2 |w|^2 + sum s l(m),  dual  D(u) = -sum s (l*(-u) + u offset) - |v|^2/(2 lam),
// v = sum s sign u x. The dual point is the Newton-dual one: at a base point with margins m0 and a step with score
// change dz,  u = -(l'(m0) + l''(m0) sign dz): by the Newton equations v is then lam (w0 + dw) up to the residual of
// the linear solve, so that the gap is the Fenchel-Young slack of the losses alone. Rows where that leaves the domain
// of the conjugate take u = -l'(m) at theta. An explicit dual may be given instead.
//
// This file shares only the row and loss primitives with the solvers' sweeps; `linsep.verify` recomputes everything
// in numpy and shares nothing.
//
// out: loss, conj+, conj-, mass+, mass-, magnitude, absolute, fallbacks, v+ [d], v- [d];  +/- is the sign of sign*u.
//   magnitude = sum s |u| (|x|.|w| + |b|) and absolute = sum of |terms| bound the rounding errors.
#pragma once
#include "sweep.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

struct ClosingChunk {
    double four[4 * kRoom];
    double m0[kRoom], m1[kRoom], u[kRoom], conj[kRoom], inside[kRoom];
    double value0[kRoom], slope0[kRoom], curve0[kRoom], value1[kRoom], slope1[kRoom], curve1[kRoom];
    double a[2][kRoom];
    int list[2][kRoom];
};

// Splits the chunk by the sign of s*sign*u and adds each side to its own sums.
template <class R>
void add_sides(const R& X, ClosingChunk& c, const Targets& t, i64 r, int nr, double* out) {
    int count[2] = {0, 0};
    double sum[2] = {0, 0}, size[2] = {0, 0}, loss = 0, magnitude = 0, absolute = 0;
    for (int i = 0; i < nr; ++i) {
        const double s = t.weight ? t.weight[r + i] : 1.0;
        const double offset = t.offset ? t.offset[r + i] : 0.0;
        const double mass = s * t.sign[r + i] * c.u[i];
        const double conj = s * (c.conj[i] + c.u[i] * offset);
        const int side = mass < 0.0;
        sum[side] += conj;
        size[side] += __builtin_fabs(mass);
        magnitude += __builtin_fabs(mass) * c.four[4 * i + 3];
        absolute += s * (c.value1[i] + __builtin_fabs(c.conj[i]) + __builtin_fabs(c.u[i] * offset));
        loss += s * c.value1[i];
        c.a[side][count[side]] = mass;
        c.list[side][count[side]] = i;
        count[side] += mass != 0.0;
    }
    out[0] += loss;
    for (int side = 0; side < 2; ++side) {
        out[1 + side] += sum[side];
        out[3 + side] += size[side];
    }
    out[5] += magnitude;
    out[6] += absolute;
    X.add(r, c.list[0], count[0], c.a[0], out + 8);
    X.add(r, c.list[1], count[1], c.a[1], out + 8 + X.d);
}

template <class R>
void closing(const R& X, i64 lo, i64 hi, const Targets& t, LossSpec spec, const double* base, const double* step,
             const double* theta, const double* dual, double* out) {
    const LossOps loss = ops(spec.id);
    ClosingChunk c;
    for (i64 r = lo; r < hi; r += X.chunk()) {
        const int nr = (int)min64(X.chunk(), hi - r), np = padded(nr);
        if (dual)
            X.closing2(r, nr, theta, c.four);
        else
            X.closing4(r, nr, base, step, theta, c.four);
        for (int i = 0; i < nr; ++i) {
            const double offset = t.offset ? t.offset[r + i] : 0.0;
            c.m0[i] = t.sign[r + i] * c.four[4 * i] + offset;
            c.m1[i] = t.sign[r + i] * c.four[4 * i + 2] + offset;
        }
        for (int i = nr; i < np; ++i) c.m0[i] = c.m1[i] = 0.0;
        loss.at(np, spec.width, c.m1, c.value1, c.slope1, c.curve1);
        if (dual) {
            for (int i = 0; i < nr; ++i) c.u[i] = dual[r + i];
        } else {
            loss.at(np, spec.width, c.m0, c.value0, c.slope0, c.curve0);
            for (int i = 0; i < nr; ++i) c.u[i] = -(c.slope0[i] + c.curve0[i] * t.sign[r + i] * c.four[4 * i + 1]);
        }
        for (int i = nr; i < np; ++i) c.u[i] = 0.0;
        loss.conjugate(np, spec.width, c.u, c.conj, c.inside);
        int outside = 0;
        for (int i = 0; i < nr; ++i)
            if (c.inside[i] == 0.0 || !(c.conj[i] - c.conj[i] == 0.0)) {
                c.u[i] = -c.slope1[i];
                ++outside;
            }
        if (outside) {
            loss.conjugate(np, spec.width, c.u, c.conj, c.inside);
            out[7] += outside;
        }
        add_sides(X, c, t, r, nr, out);
    }
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
