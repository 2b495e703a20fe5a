// The closing pass of the softmax loss: the sums from which a certificate is assembled (src/linsep/simplex.py).
//
// Dual point U = onehot(y) - p~ with p~ in the simplex. The Newton-dual one: with p the softmax at the base point and
// dz the score change of the step,  p~ = p + (diag p - p p') dz; by the Newton equations X'(sU) = lam (W0 + step) up to
// the residual of the linear solve. Rows where p~ leaves the simplex take the softmax at W. An explicit U may be given.
//
// out: loss, entropy, magnitude, absolute, spread, bulk, fallbacks; mass [K] = weight of each class;
//      (d + 1, K) = sum s (x, 1) U'; (k, d) = sum of s x over the rows of each class.
//   magnitude >= sum s |U_c| (|x|.|w_c| + |b_c|), the same with the slopes at W in place of U, absolute = sum of
//   |terms|, spread = sum s |U| |x| and bulk = sum s |x| bound the rounding errors.
#pragma once
#include "softmax.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

constexpr int kSoftmaxHeader = 7;

// Plane 0 becomes the proposed p~ off the label.
template <class R>
void propose(const R& X, SoftmaxChunk& c, const double* base, const double* step, const double* dual) {
    if (dual) {
        for (int i = 0; i < c.nr; ++i)
            for (i64 a = 0; a < c.y.k; ++a) c.plane(0, a)[i] = -dual[(c.first + i) * c.y.k + a];
        return;
    }
    c.scores(X, base, 0);
    c.softmax(0);
    c.scores(X, step, 1);
    double q[kMaxChunk] = {};
    for (i64 a = 0; a < c.y.k; ++a)
        for (int i = 0; i < c.nr; ++i) q[i] += c.plane(0, a)[i] * c.plane(1, a)[i];
    for (i64 a = 0; a < c.y.k; ++a)
        for (int i = 0; i < c.nr; ++i) c.plane(0, a)[i] *= 1.0 + (c.plane(1, a)[i] - q[i]);
}

// Rows of plane 0 outside the simplex take plane 2, whose rest is rest1; rest becomes the sum off the label.
inline int keep_feasible(SoftmaxChunk& c, const double* rest1) {
    int outside = 0;
    for (int i = 0; i < c.nr; ++i) {
        c.at_label(0, i) = 0.0;
        double sum = 0.0, least = 0.0;
        for (i64 a = 0; a < c.y.k; ++a) {
            const double v = c.plane(0, a)[i];
            sum += v;
            least = v < least ? v : least;
        }
        c.rest[i] = sum;
        if (least >= 0.0 && sum <= 1.0) continue;
        for (i64 a = 0; a < c.y.k; ++a) c.plane(0, a)[i] = c.plane(2, a)[i];
        c.at_label(0, i) = 0.0;
        c.rest[i] = rest1[i];
        ++outside;
    }
    return outside;
}

template <class R>
void softmax_closing(const R& X, i64 lo, i64 hi, const Classes& y, const double* base, const double* step,
                     const double* W, const double* bound, const double* dual, double* out, double* scratch) {
    SoftmaxChunk c(y, scratch);
    const double score_error = (double)(X.d + 6) * 0x1p-53;
    double loss[kMaxChunk], rest1[kMaxChunk], entropy[kMaxChunk], scores[kRoom], reach[kRoom];
    double* mass = out + kSoftmaxHeader;
    double* V = mass + c.K;
    double* features = V + (X.d + 1) * c.K;
    for (i64 r = lo; r < hi; r += c.step(X)) {
        c.open(r, (int)min64(c.step(X), hi - r));
        c.scores(X, W, 2);
        c.softmax(2);
        for (int i = 0; i < c.np; ++i) loss[i] = c.loss[i], rest1[i] = c.rest[i], c.rest[i] = 0.0;
        propose(X, c, base, step, dual);
        out[6] += keep_feasible(c, rest1);
        X.reached(r, c.nr, bound, scores, reach);
        double square[kMaxChunk];
        for (int i = 0; i < c.np; i += VL) {
            const vd rest = load(c.rest + i);
            vd h = entropy_of_rest(rest), squares = rest * rest;
            for (i64 a = 0; a < y.k; ++a) {
                const vd v = load(c.plane(0, a) + i);
                h -= v * vlog(v);
                squares += v * v;
                store(c.plane(0, a) + i, -v);
            }
            store(entropy + i, h);
            store(square + i, squares);
        }
        out[0] += c.weighted_total(loss);
        out[1] += c.weighted_total(entropy);
        for (int i = 0; i < c.nr; ++i) {
            const double s = c.weight[i], far = reach[i];
            double stretch[VL];
            store(stretch, vexp(splat(2.0 * score_error * far)));
            const double slope = rest1[i] * stretch[0];
            out[2] += 2.0 * s * far * (c.rest[i] > slope ? c.rest[i] : slope);
            out[3] += s * (loss[i] + __builtin_fabs(entropy[i]));
            const double length = s * __builtin_sqrt(X.norm2(r + i));
            out[4] += length * __builtin_sqrt(square[i]);
            out[5] += length;
            const i64 label = y.label[r + i];
            mass[label] += s;
            if (s != 0.0) X.axpy(r + i, s, features + label * X.d);
        }
        c.weigh_zero_sum(0);
        c.add_to(X, 0, V);
    }
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
