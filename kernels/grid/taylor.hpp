// Taylor series of the logistic loss, and of its conjugate at the linearised dual point, around a base with margin m0:
// with l0 = l(m0), p = -l'(m0), h = l''(m0) = p (1 - p), r = 1 - 2 p and t = m - m0,
//
//   l(m) = l0 - p t + h sum_k d_k t^k,      d_2 = 1/2, the others polynomials of h, times r for odd k (k! d_k h = l^(k)(m0))
//   u = p - h t,   l*(-u) = u log u + (1 - u) log(1 - u) = -l0 - u m0 + h sum_k c_k t^k,
//   c_k = e_(k-1) / (k (k - 1)),   e_m = (1 - p)^m - (-p)^m:   e_1 = 1, e_2 = r, e_(m+1) = r e_m + h e_(m-1)
//
// (u = p (1 - (1 - p) t) and 1 - u = (1 - p)(1 + p t); expand (1 + x) log(1 + x).) The series of l converges for |t| <
// pi, with terms below (2/k) (t/pi)^k; that of l* for |t| < 1, with terms below h t^k / (k (k - 1)). The truncation
// error is below the rounding error of l. Coefficients depend on the row and the base, and many models share them.
#pragma once
#include "core/losses.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

constexpr double kRadius = 1.0 / 8.0, kShortRadius = 1.0 / 16.0;                            // largest |t| of a chunk
constexpr int kLossOrder = 10, kConjOrder = 15, kShortLossOrder = 9, kShortConjOrder = 11;  // highest powers used

// Planes of a base point, kGridRows numbers each. With s the weight and |x| the norm of a row: Mass s p, Bend s h,
// BendNorm s h |x|, BendMargin s h m0; Once: sums over the rows of s l0, s p m0, s p, s p |x|, in vectors.
enum BasePlane {
    kMargin,
    kValue,
    kSlope,
    kCurve,
    kMass,
    kBend,
    kBendNorm,
    kBendMargin,
    kOnce,
    kLossTerms,                                // d_3 ...
    kConjTerms = kLossTerms + kLossOrder - 2,  // c_3 ...
    kEnd = kConjTerms + kConjOrder - 2
};
static_assert(kEnd == kBasePlanes);

// Fill the planes of a base point after kCurve.
inline void series_coefficients(double* base, const double* weight, const double* norm, int np) {
    auto plane = [&](int which, int i) { return base + which * kGridRows + i; };
    vd value{}, margin{}, mass{}, reach{};
    for (int i = 0; i < np; i += VL) {
        const vd s = load(weight + i), x = load(norm + i), m0 = load(plane(kMargin, i));
        const vd p = -load(plane(kSlope, i)), h = load(plane(kCurve, i)), r = 1.0 - 2.0 * p;
        const vd sp = s * p, sh = s * h;
        value += s * load(plane(kValue, i));
        margin += sp * m0;
        mass += sp;
        reach += sp * x;
        store(plane(kMass, i), sp);
        store(plane(kBend, i), sh);
        store(plane(kBendNorm, i), sh * x);
        store(plane(kBendMargin, i), sh * m0);
        const vd d[kLossOrder - 2] = {
            -1.0 / 6.0 * r,
            1.0 / 24.0 - 1.0 / 4.0 * h,
            r * (1.0 / 10.0 * h - 1.0 / 120.0),
            1.0 / 720.0 + h * (1.0 / 6.0 * h - 1.0 / 24.0),
            r * (h * (1.0 / 84.0 - 1.0 / 14.0 * h) - 1.0 / 5040.0),
            1.0 / 40320.0 + h * (h * (1.0 / 24.0 - 1.0 / 8.0 * h) - 1.0 / 320.0),
            r * (h * (1.0 / 1440.0 + h * (1.0 / 18.0 * h - 1.0 / 72.0)) - 1.0 / 362880.0),
            1.0 / 3628800.0 + h * (h * (7.0 / 1440.0 + h * (1.0 / 10.0 * h - 1.0 / 24.0)) - 17.0 / 120960.0)};
        for (int k = 0; k < kLossOrder - 2; ++k) store(plane(kLossTerms + k, i), d[k]);
        vd before = splat(1.0), e = r;
        for (int k = 3; k <= kConjOrder; ++k) {
            store(plane(kConjTerms + k - 3, i), e * (1.0 / (k * (k - 1.0))));
            const vd next = r * e + h * before;
            before = e;
            e = next;
        }
    }
    const vd once[4] = {value, margin, mass, reach};
    for (int v = 0; v < 4; ++v) store(plane(kOnce, v * VL), once[v]);
}

// Classify the largest |t| of a chunk: 0 within kShortRadius, 1 within kRadius, 2 beyond, or NaN.
inline int distance(const double* dz, int np) {
    vi beyond{}, apart{};
    for (int i = 0; i < np; i += VL) {
        const vd t = vabs(load(dz + i));
        beyond |= ~(t <= kRadius);
        apart |= ~(t <= kShortRadius);
    }
    return any(beyond) ? 2 : any(apart);
}

// Sums over the rows of s (l - l0), s (l* + l0 + p m0), s h t, s h t |x|; the masses s sign u replace the score changes
// dz.
struct SeriesSums {
    vd loss, conj, mass, reach;
};
template <int Loss, int Conj>
inline SeriesSums series_model(const double* base, double sign, int np, double* dz) {
    auto plane = [&](int which, int i) { return load(base + which * kGridRows + i); };
    SeriesSums s{};
    for (int i = 0; i < np; i += VL) {
        const vd t = sign * load(dz + i), sp = plane(kMass, i), bend = plane(kBend, i) * t;
        vd d = plane(kLossTerms + Loss - 3, i), c = plane(kConjTerms + Conj - 3, i);
#pragma GCC unroll 16
        for (int k = Loss - 1; k >= 3; --k) d = d * t + plane(kLossTerms + k - 3, i);
#pragma GCC unroll 16
        for (int k = Conj - 1; k >= 3; --k) c = c * t + plane(kConjTerms + k - 3, i);
        s.loss += bend * (t * (d * t + 0.5)) - sp * t;
        s.conj += bend * (t * (c * t + 0.5)) + plane(kBendMargin, i) * t;
        s.mass += bend;
        s.reach += plane(kBendNorm, i) * t;
        store(dz + i, sign * (sp - bend));
    }
    return s;
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
