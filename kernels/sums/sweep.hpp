// Passes over rows [lo, hi): loss, gradient and curvature, line searches, Hessian-vector products, moments.
// Each chunk of rows is read from memory once; the gradient reads it again from the cache.
#pragma once
#include "core/losses.hpp"
#include "core/rows.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

constexpr int kRoom = kMaxChunk + 8;  // size of chunk arrays, padded to whole vectors

// Numbers for each row of a chunk; padding lanes have weight 0.
struct Chunk {
    double m[kRoom], value[kRoom], slope[kRoom], curvature[kRoom], weight[kRoom];
};

// Turn scores (in c.m) into margins and fill the weights.
inline void margins(Chunk& c, const Targets& t, i64 r, int nr) {
    const int np = padded(nr);
    for (int i = 0; i < nr; ++i) c.m[i] = t.sign[r + i] * c.m[i] + (t.offset ? t.offset[r + i] : 0.0);
    for (int i = 0; i < nr; ++i) c.weight[i] = t.weight ? t.weight[r + i] : 1.0;
    for (int i = nr; i < np; ++i) c.m[i] = c.weight[i] = 0.0;
}

inline double weighted_total(const double* a, const double* w, int np) {
    vd s{};
    for (int i = 0; i < np; i += VL) s += load(a + i) * load(w + i);
    return total(s);
}

// 0, or NaN if a margin is not finite: a loss may be 0 at infinity, but an infinite feature is always an error.
inline double not_finite(const double* m, int np) {
    vd s{};
    for (int i = 0; i < np; i += VL) s += load(m + i) - load(m + i);
    return total(s);
}

// Move the nonzero entries of a to the front, write their positions to list, and return their number.
inline int keep_nonzero(double* a, int nr, int* list) {
    int count = 0;
    for (int i = 0; i < nr; ++i) {
        const double v = a[i];
        list[count] = i;
        a[count] = v;
        count += v != 0.0;
    }
    return count;
}

// Losses with linear tails have no curvature there. Their secant curvature -l'(m)/(kink - m), that of the parabola
// centred at the kink with the same slope, majorises the loss (half-quadratic majorisation), so that steps with it
// descend.
inline void blend_secant(Chunk& c, int nr, double kink, double blend) {
    for (int i = 0; i < nr; ++i) {
        const double r = kink - c.m[i];
        const double secant = r != 0.0 ? -c.slope[i] / r : c.curvature[i];
        if (blend * secant > c.curvature[i]) c.curvature[i] = blend * secant;
    }
}

template <class R>
void sweep(const R& X, i64 lo, i64 hi, const Targets& t, LossSpec spec, const double* theta, double* out,
           double* curvature, bool gradient, double blend = 0.0) {
    const LossOps loss = ops(spec.id);
    Chunk c;
    int list[kRoom];
    for (i64 r = lo; r < hi; r += X.chunk()) {
        const int nr = (int)min64(X.chunk(), hi - r), np = padded(nr);
        X.dots(r, nr, theta, theta[X.d], c.m);
        margins(c, t, r, nr);
        loss.at(np, spec.shape, c.m, c.value, c.slope, c.curvature);
        out[0] += weighted_total(c.value, c.weight, np) + not_finite(c.m, np);
        if (curvature && blend > 0.0) blend_secant(c, nr, kink_of(spec), blend);
        if (curvature)
            for (int i = 0; i < nr; ++i) curvature[r + i] = c.weight[i] * c.curvature[i];
        if (!gradient) continue;
        double sum = 0;
        for (int i = 0; i < nr; ++i) {
            c.slope[i] *= c.weight[i] * t.sign[r + i];
            sum += c.slope[i];
        }
        out[1 + X.d] += sum;
        const int count = keep_nonzero(c.slope, nr, list);
        X.add(r, list, count, c.slope, out + 1);
    }
}

// Losses and their derivatives at several step sizes along theta + step * delta: a line search in one pass.
template <class R>
void ray(const R& X, i64 lo, i64 hi, const Targets& t, LossSpec spec, const double* theta, const double* delta,
         const double* steps, i64 n_steps, double* out) {
    const LossOps loss = ops(spec.id);
    Chunk c;
    double z[kRoom], dz[kRoom];
    for (i64 r = lo; r < hi; r += X.chunk()) {
        const int nr = (int)min64(X.chunk(), hi - r), np = padded(nr);
        X.dots(r, nr, theta, theta[X.d], z);
        X.dots(r, nr, delta, delta[X.d], dz);
        for (i64 k = 0; k < n_steps; ++k) {
            for (int i = 0; i < nr; ++i) c.m[i] = z[i] + steps[k] * dz[i];
            margins(c, t, r, nr);
            loss.at(np, spec.shape, c.m, c.value, c.slope, c.curvature);
            out[2 * k] += weighted_total(c.value, c.weight, np);
            double s = 0;
            for (int i = 0; i < nr; ++i) s += c.weight[i] * t.sign[r + i] * c.slope[i] * dz[i];
            out[2 * k + 1] += s;
        }
    }
}

template <class R>
void hess_vec(const R& X, i64 lo, i64 hi, const double* h, const double* v, double* out) {
    double z[kRoom];
    int list[kRoom];
    for (i64 r = lo; r < hi; r += X.chunk()) {
        const int nr = (int)min64(X.chunk(), hi - r);
        X.dots(r, nr, v, v[X.d], z);
        double sum = 0;
        for (int i = 0; i < nr; ++i) {
            z[i] *= h[r + i];
            sum += z[i];
        }
        out[X.d] += sum;
        const int count = keep_nonzero(z, nr, list);
        X.add(r, list, count, z, out);
    }
}

template <class R>
void combine(const R& X, i64 lo, i64 hi, const double* a, double* out) {
    double b[kRoom];
    int list[kRoom];
    for (i64 r = lo; r < hi; r += X.chunk()) {
        const int nr = (int)min64(X.chunk(), hi - r);
        for (int i = 0; i < nr; ++i) {
            b[i] = a[r + i];
            out[X.d] += b[i];
        }
        const int count = keep_nonzero(b, nr, list);
        X.add(r, list, count, b, out);
    }
}

template <class R>
void moments(const R& X, i64 lo, i64 hi, const double* h, double* out) {
    double a[kRoom];
    int list[kRoom];
    for (i64 r = lo; r < hi; r += X.chunk()) {
        const int nr = (int)min64(X.chunk(), hi - r);
        for (int i = 0; i < nr; ++i) {
            a[i] = h ? h[r + i] : 1.0;
            out[2 * X.d] += a[i];
            if (a[i] != 0.0) X.add_squares(r + i, a[i], out);
        }
        const int count = keep_nonzero(a, nr, list);
        X.add(r, list, count, a, out + X.d);
    }
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
