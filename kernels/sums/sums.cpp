// Passes over the rows for pointwise losses: value, gradient, curvature, closing pass, scores.
// Compiled once per instruction set: see core/dispatch.cpp.
#include "core/dispatch.hpp"
#include "core/gram.hpp"
#include "sums/closing.hpp"
#include "sums/predictions.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

template <class R>
void row_norms(const R& X, i64 lo, i64 hi, double* norms) {
    for (i64 r = lo; r < hi; ++r) norms[r] = X.norm2(r);
}
template <class R>
void reaches(const R& X, i64 lo, i64 hi, const double* theta, double* z) {
    for (i64 r = lo; r < hi; ++r) z[r - lo] = X.reach(r, theta) + __builtin_fabs(theta[X.d]);
}
template <class R>
void scores_k(const R& X, i64 lo, i64 hi, const double* W, i64 K, double* Z) {
    for (i64 r = lo; r < hi; r += X.chunk()) X.dots_k(r, (int)min64(X.chunk(), hi - r), W, K, Z + (r - lo) * K);
}
template <class T>
double not_finite_of(const T* x, i64 count) {
    vd s[4] = {};
    i64 i = 0;
    for (; i + 4 * VL <= count; i += 4 * VL)
        for (int q = 0; q < 4; ++q) s[q] += load(x + i + q * VL) - load(x + i + q * VL);
    double sum = total((s[0] + s[1]) + (s[2] + s[3]));
    for (; i < count; ++i) sum += (double)x[i] - (double)x[i];
    return sum;
}
template <class R>
double not_finite(const R& X) {
    return not_finite_of(X.x, X.n_entries());
}
void pointwise(LossSpec l, i64 n, const double* m, double* value, double* slope, double* curvature, double* conjugate) {
    const LossOps loss = ops(l.id);
    double in[VL], a[VL], b[VL], c[VL], inside[VL];
    for (i64 i = 0; i < n; i += VL) {
        const int now = (int)min64(VL, n - i);
        for (int q = 0; q < VL; ++q) in[q] = q < now ? m[i + q] : 0.0;
        loss.at(VL, l.shape, in, a, b, c);
        for (int q = 0; q < now; ++q) value[i + q] = a[q], slope[i + q] = b[q], curvature[i + q] = c[q];
        loss.conjugate(VL, l.shape, in, a, inside);
        for (int q = 0; q < now; ++q) conjugate[i + q] = inside[q] != 0.0 ? a[q] : __builtin_inf();
    }
}

}  // namespace

void fill_sums(Table& table) {
#include "sums/kernels.def"
}

}  // namespace linsep::LINSEP_ARCH
