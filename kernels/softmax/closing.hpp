// The closing pass of the softmax loss: all sums of a certificate (src/linsep/certificates/softmax.py).
//
// The dual point is U = onehot(y) - p~ with p~ in the simplex. It is either given or linearised: with p the softmax at
// the base point and dz the change of the scores along the step,  p~ = p + (diag p - p p') dz; by the Newton equations,
// X'(sU) = lam (W0 + step) up to the residual of the linear solve. Where p~ lies outside the simplex, the softmax at W
// replaces it; if that is outside too, the entropy of the row is NaN. The base may be null: it is then W - step, and its
// scores are the difference of the two others, which saves a product.
//
// out: loss, entropy, magnitude, absolute, spread, bulk, fallbacks; mass [K] = weight of each class;
//      (d + 1, K) = sum s (x, 1) U'; (k, d) = sum of s x over the rows of each class.
//   magnitude, an upper bound of sum s |U_c| (|x|.|w_c| + |b_c|), also with the slopes at W in place of U,
//   absolute = sum of |terms|, spread = sum s |U| |x| and bulk = sum s |x| bound the rounding errors
//   (certificates/softmax.py derives how). absolute includes 1 - p_y, times kSteep where p_y is small, because
//   -p_y log p_y amplifies its rounding error there.
#pragma once
#include "softmax/passes.hpp"
#include "sums/sweep.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

constexpr int kSoftmaxHeader = 7;
constexpr double kSteep = 16.0, kSmall = 0x1p-7;

// Upper bounds of s |U| |x| and s |x| that hold even if the squares of |U| and |x|, or s U, have underflowed. A square
// loses at most 2^-1074, so the norm of m numbers loses at most sqrt(m) 2^-537.
struct Lengths {
    double of_x, of_u, lost;
    Lengths(i64 d, i64 k)
        : of_x(__builtin_sqrt((double)d) * 0x1p-537),
          of_u(__builtin_sqrt((double)k) * 0x1p-537),
          lost((double)k * 0x1p-1010) {}
    void add(double s, double x_squared, double u_squared, double* spread, double* bulk) const {
        const double x = __builtin_sqrt(x_squared) + of_x;
        *spread += x * (s * (__builtin_sqrt(u_squared) + of_u) + lost);
        *bulk += s * x;
    }
};

// Set planes 2 to the scores at W and, for a linearised dual point, planes 0 and 1 to those of its base and its step.
template <class R>
void closing_scores(SoftmaxChunk<R>& c, bool linearised, bool with_base) {
    c.scores(0, 2);
    if (!linearised) return;
    c.scores(2, 1);
    if (with_base) return c.scores(1, 0);
    for (i64 a = 0; a < c.y.k; ++a)
        for (int i = 0; i < c.np; i += VL) store(c.plane(0, a) + i, load(c.plane(2, a) + i) - load(c.plane(1, a) + i));
}

// Set plane 0 to the proposed p~ off the label.
template <class R>
void propose(SoftmaxChunk<R>& c, const double* dual) {
    const i64 k = c.y.k;
    if (dual) {
        for (int i = 0; i < c.np; ++i)
            for (i64 a = 0; a < k; ++a) c.plane(0, a)[i] = i < c.nr ? -dual[(c.first + i) * k + a] : 0.0;
        return;
    }
    c.softmax(0);
    for (int i = 0; i < c.np; i += VL) {
        vd q{};
        for (i64 a = 0; a < k; ++a) q += load(c.plane(0, a) + i) * load(c.plane(1, a) + i);
        for (i64 a = 0; a < k; ++a)
            store(c.plane(0, a) + i, load(c.plane(0, a) + i) * (1.0 + (load(c.plane(1, a) + i) - q)));
    }
}

// Replace rows of plane 0 outside the simplex by plane 2; set `rest` to the sum off the label, or NaN if plane 2 is
// outside too. Return the number of replaced rows.
template <class R>
int keep_feasible(SoftmaxChunk<R>& c) {
    const double most = 1.0 + 8.0 * (double)c.y.k * 0x1p-53;
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
            double again = 0.0, lowest = 0.0;
            for (i64 a = 0; a < c.y.k; ++a) {
                const double v = c.plane(0, a)[q] = a == c.label[q] ? 0.0 : c.plane(2, a)[q];
                again += v;
                lowest = v < lowest ? v : lowest;
            }
            c.rest[q] = !(again <= most && lowest >= 0.0) ? __builtin_nan("") : again < 1.0 ? again : 1.0;
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
    const Lengths sizes(X.d, y.k);
    double loss[kMaxChunk], rest1[kMaxChunk], entropy[kMaxChunk], pull[kMaxChunk], scores[kRoom], reach[kRoom],
        norms2[kRoom];
    c.products.take(0, W);
    if (!dual && base) c.products.take(1, base);
    if (!dual) c.products.take(2, step);
    for (i64 r = lo; r < hi; r += c.step()) {
        c.open(r, (int)min64(c.step(), hi - r));
        closing_scores(c, !dual, base);
        c.softmax(2);
        for (int i = 0; i < c.np; ++i) loss[i] = c.loss[i], rest1[i] = c.rest[i];
        propose(c, dual);
        out[6] += keep_feasible(c);
        X.scores_and_sizes(r, c.nr, bound, scores, reach, norms2);
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
            const vd far = load(reach + i), grown = load(rest1 + i) * vexp(2.0 * score_error * far);
            const vd slope = vmin(grown, splat(1.0));  // NaN remains NaN; where exp is clamped, `grown` exceeds 1
            store(pull + i, 2.0 * far * vmax(slope, load(c.rest + i)));
            const vd rest = load(c.rest + i), count = select(1.0 - rest < kSmall, splat(kSteep), splat(1.0));
            store(rest1 + i, load(loss + i) + vabs(load(entropy + i)) + count * rest);
        }
        out[2] += c.weighted_total(pull);
        out[3] += c.weighted_total(rest1);
        for (int i = 0; i < c.nr; ++i) {
            const double s = c.weight[i];
            sizes.add(s, norms2[i], square[i], out + 4, out + 5);
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
