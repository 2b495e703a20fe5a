// The passes over rows of a pointwise loss: value, gradient, curvature, certificate, scores.
// Compiled once per instruction set: see core/dispatch.cpp.
#include "core/dispatch.hpp"
#include "core/gram.hpp"
#include "sums/closing.hpp"
#include "sums/predictions.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

void do_sweep(Rows rows, i64 lo, i64 hi, Targets t, LossSpec l, const double* theta, double* out, double* curvature,
              int gradient, double blend) {
    visit(rows, [&](const auto& X) { sweep(X, lo, hi, t, l, theta, out, curvature, gradient != 0, blend); });
}
void do_closing(Rows rows, i64 lo, i64 hi, Targets t, LossSpec l, const double* base, const double* step,
                const double* theta, const double* dual, double* out, double* room, double* found) {
    visit(rows, [&](const auto& X) { closing(X, lo, hi, t, l, base, step, theta, dual, out, room, found); });
}
void do_gram(Rows rows, i64 lo, i64 hi, const double* h, const double* mu, double* out, double* scratch) {
    visit(rows, [&](const auto& X) { gram(X, lo, hi, h, mu, out, scratch); });
}
void do_gram_single(Rows rows, i64 lo, i64 hi, const double* h, const double* mu, double* out, double* scratch) {
    visit(rows, [&](const auto& X) { gram_single(X, lo, hi, h, mu, out, scratch, true); });
}
void do_hess_vec(Rows rows, i64 lo, i64 hi, const double* h, const double* v, double* out) {
    visit(rows, [&](const auto& X) { hess_vec(X, lo, hi, h, v, out); });
}
void do_combine(Rows rows, i64 lo, i64 hi, const double* a, double* out) {
    visit(rows, [&](const auto& X) { combine(X, lo, hi, a, out); });
}
void do_moments(Rows rows, i64 lo, i64 hi, const double* h, double* out) {
    visit(rows, [&](const auto& X) { moments(X, lo, hi, h, out); });
}
void do_ray(Rows rows, i64 lo, i64 hi, Targets t, LossSpec l, const double* theta, const double* delta,
            const double* steps, i64 n_steps, double* out) {
    visit(rows, [&](const auto& X) { ray(X, lo, hi, t, l, theta, delta, steps, n_steps, out); });
}
double do_scores(Rows rows, i64 lo, i64 hi, const double* theta, double* z) {
    return visit(rows, [&](const auto& X) { return scores(X, lo, hi, theta, z); });
}
double do_sigmoids(Rows rows, i64 lo, i64 hi, const double* theta, double* p) {
    return visit(rows, [&](const auto& X) { return sigmoids(X, lo, hi, theta, p); });
}
double do_softmaxes(Rows rows, i64 lo, i64 hi, const double* W, i64 k, double* p, double* scratch) {
    return visit(rows, [&](const auto& X) { return softmaxes(X, lo, hi, W, k, p, scratch); });
}
void do_row_norms(Rows rows, i64 lo, i64 hi, double* norms) {
    visit(rows, [&](const auto& X) {
        for (i64 r = lo; r < hi; ++r) norms[r] = X.norm2(r);
    });
}
void do_reaches(Rows rows, i64 lo, i64 hi, const double* theta, double* z) {
    visit(rows, [&](const auto& X) {
        for (i64 r = lo; r < hi; ++r) z[r - lo] = X.reach(r, theta) + __builtin_fabs(theta[X.d]);
    });
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
double do_not_finite(Rows rows) {
    return visit(rows, [&](const auto& X) { return not_finite_of(X.x, X.stored()); });
}
void do_pointwise(LossSpec l, i64 n, const double* m, double* value, double* slope, double* curvature,
                  double* conjugate) {
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
void do_scores_k(Rows rows, i64 lo, i64 hi, const double* W, i64 K, double* Z) {
    visit(rows, [&](const auto& X) {
        for (i64 r = lo; r < hi; r += X.chunk()) X.dots_k(r, (int)min64(X.chunk(), hi - r), W, K, Z + (r - lo) * K);
    });
}

}  // namespace

void fill_sums(Table& table) {
    table.sweep = do_sweep;
    table.closing = do_closing;
    table.gram = do_gram;
    table.gram_single = do_gram_single;
    table.hess_vec = do_hess_vec;
    table.combine = do_combine;
    table.moments = do_moments;
    table.ray = do_ray;
    table.scores = do_scores;
    table.sigmoids = do_sigmoids;
    table.softmaxes = do_softmaxes;
    table.row_norms = do_row_norms;
    table.reaches = do_reaches;
    table.not_finite = do_not_finite;
    table.pointwise = do_pointwise;
    table.scores_k = do_scores_k;
}

}  // namespace linsep::LINSEP_ARCH
