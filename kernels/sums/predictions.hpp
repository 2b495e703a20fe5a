// Scores and probabilities of a fitted model. Each function returns 0, or NaN if a score is not finite.
#pragma once
#include "sums/sweep.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

// e^x, or 0 where the result would be subnormal.
inline vd vexp_or_0(vd x) { return select(x < -708.0, vd{}, vexp(x)); }

template <class R>
double scores(const R& X, i64 lo, i64 hi, const double* theta, double* z) {
    double bad = 0;
    for (i64 r = lo; r < hi; r += X.chunk()) {
        const int nr = (int)min64(X.chunk(), hi - r);
        double* at = z + (r - lo);
        X.dots(r, nr, theta, theta[X.d], at);
        const int whole = nr - nr % VL;
        bad += not_finite(at, whole);
        for (int i = whole; i < nr; ++i) bad += at[i] - at[i];
    }
    return bad;
}

// p (hi - lo, 2): probabilities 1/(1 + e^z), 1/(1 + e^-z) of the two classes, each to full relative accuracy.
template <class R>
double sigmoids(const R& X, i64 lo, i64 hi, const double* theta, double* p) {
    double z[kRoom], first[kRoom], second[kRoom], bad = 0;
    for (i64 r = lo; r < hi; r += X.chunk()) {
        const int nr = (int)min64(X.chunk(), hi - r), np = padded(nr);
        X.dots(r, nr, theta, theta[X.d], z);
        for (int i = nr; i < np; ++i) z[i] = 0.0;
        bad += not_finite(z, np);
        for (int i = 0; i < np; i += VL) {
            const vd m = load(z + i), e = vexp_or_0(-vabs(m)), large = 1.0 / (1.0 + e), small = e * large;
            const vi rising = m >= 0.0;
            store(first + i, select(rising, small, large));
            store(second + i, select(rising, large, small));
        }
        double* out = p + 2 * (r - lo);
        for (int i = 0; i < nr; ++i) {
            out[2 * i] = first[i];
            out[2 * i + 1] = second[i];
        }
    }
    return bad;
}

// p (hi - lo, k): softmax of the scores (x, 1)'W, W (d + 1, K), K = padded_classes(k); scratch holds 256 K numbers.
template <class R>
double softmaxes(const R& X, i64 lo, i64 hi, const double* W, i64 k, double* p, double* scratch) {
    const i64 K = padded_classes(k);
    double bad = 0;
    for (i64 r = lo; r < hi; r += X.chunk()) {
        const int nr = (int)min64(X.chunk(), hi - r);
        X.dots_k(r, nr, W, K, scratch);
        for (int i = 0; i < nr; ++i) {
            double* z = scratch + i * K;
            double* out = p + (r - lo + i) * k;
            double top = z[0];
            for (i64 c = 0; c < k; ++c) {
                bad += z[c] - z[c];
                top = z[c] > top ? z[c] : top;
            }
            for (i64 c = 0; c < K; c += VL) store(z + c, vexp_or_0(load(z + c) - top));
            double sum = 0;
            for (i64 c = 0; c < k; ++c) sum += z[c];
            for (i64 c = 0; c < k; ++c) out[c] = z[c] / sum;
        }
    }
    return bad;
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
