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
void propose(SoftmaxChunk<R>& c, const double* dual) {
    const i64 k = c.y.k;
    if (dual) {
        for (int i = 0; i < c.np; ++i)
            for (i64 a = 0; a < k; ++a) c.plane(0, a)[i] = i < c.nr ? -dual[(c.first + i) * k + a] : 0.0;
        return;
    }
    c.scores(1, 0);
    c.softmax(0);
    c.scores(2, 1);
    for (int i = 0; i < c.np; i += VL) {
        vd q{};
        for (i64 a = 0; a < k; ++a) q += load(c.plane(0, a) + i) * load(c.plane(1, a) + i);
        for (i64 a = 0; a < k; ++a)
            store(c.plane(0, a) + i, load(c.plane(0, a) + i) * (1.0 + (load(c.plane(1, a) + i) - q)));
    }
}

// Rows of plane 0 outside the simplex take plane 2, whose rest is rest1; rest becomes the sum off the label.
template <class R>
int keep_feasible(SoftmaxChunk<R>& c, const double* rest1) {
    int outside = 0;
    for (int i = 0; i < c.np; i += VL) {
        vd sum{}, least{};
        for (i64 a = 0; a < c.y.k; ++a) {
            const vd v = c.put(0, a, i, load(c.plane(0, a) + i));
            sum += v;
            least = vmin(v, least);
        }
        store(c.rest + i, sum);
        const unsigned inside = bits((least >= 0.0) & (sum <= 1.0));
        for (int q = i; q < i + VL && q < c.nr; ++q) {
            if (inside >> (q - i) & 1u) continue;
            for (i64 a = 0; a < c.y.k; ++a) c.plane(0, a)[q] = c.plane(2, a)[q];
            c.at_label(0, q) = 0.0;
            c.rest[q] = rest1[q];
            ++outside;
        }
    }
    for (int i = c.nr; i < c.np; ++i) c.rest[i] = 0.0;
    return outside;
}

template <class R>
void softmax_closing(const R& X, i64 lo, i64 hi, const Classes& y, const double* base, const double* step,
                     const double* W, const double* bound, const double* dual, double* out, double* scratch) {
    const i64 K = padded_classes(y.k);
    double* mass = out + kSoftmaxHeader;
    double* V = mass + K;
    double* features = V + (X.d + 1) * K;
    SoftmaxChunk c(X, y, V, scratch);
    const double score_error = (double)(X.d + 6) * 0x1p-53;
    double loss[kMaxChunk], rest1[kMaxChunk], entropy[kMaxChunk], pull[kMaxChunk], scores[kRoom], reach[kRoom],
        lengths[kRoom];
    c.products.take(0, W);
    if (!dual) c.products.take(1, base), c.products.take(2, step);
    for (i64 r = lo; r < hi; r += c.step()) {
        c.open(r, (int)min64(c.step(), hi - r));
        c.scores(0, 2);
        c.softmax(2);
        for (int i = 0; i < c.np; ++i) loss[i] = c.loss[i], rest1[i] = c.rest[i];
        propose(c, dual);
        out[6] += keep_feasible(c, rest1);
        X.reached(r, c.nr, bound, scores, reach, lengths);
        for (int i = c.nr; i < c.np; ++i) reach[i] = 0.0;
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
        for (int i = 0; i < c.np; i += VL) {
            const vd far = load(reach + i), slope = load(rest1 + i) * vexp(2.0 * score_error * far);
            store(pull + i, 2.0 * far * vmax(slope, load(c.rest + i)));
            store(rest1 + i, load(loss + i) + vabs(load(entropy + i)));
        }
        out[2] += c.weighted_total(pull);
        out[3] += c.weighted_total(rest1);
        for (int i = 0; i < c.nr; ++i) {
            const double s = c.weight[i], length = s * __builtin_sqrt(lengths[i]);
            out[4] += length * __builtin_sqrt(square[i]);
            out[5] += length;
            mass[c.label[i]] += s;
            if (s != 0.0) X.axpy(r + i, s, features + c.label[i] * X.d);
        }
        c.weigh_zero_sum(0);
        c.add(0);
    }
    c.close();
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
