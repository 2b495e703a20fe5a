// This file is compiled once per instruction set (LINSEP_ARCH names it) and fills that set's Table.
// Nothing here may use a template of the standard library: the linker would merge the copies of different sets.
#include "closing.hpp"
#include "crammer_singer.hpp"
#include "dual_cd.hpp"
#include "free_set.hpp"
#include "gram.hpp"
#include "grid.hpp"
#include "interior_fit.hpp"
#include "link.hpp"
#include "newton.hpp"
#include "nnls.hpp"
#include "online.hpp"
#include "quadratic_cd.hpp"
#include "softmax_newton.hpp"
#include "sweep.hpp"

#define LINSEP_TEXT_(x) #x
#define LINSEP_TEXT(x) LINSEP_TEXT_(x)
#define LINSEP_JOIN_(a, b) a##b
#define LINSEP_JOIN(a, b) LINSEP_JOIN_(a, b)

namespace linsep {
namespace LINSEP_ARCH {
namespace {

void do_sweep(Rows rows, i64 lo, i64 hi, Targets t, LossSpec l, const double* theta, double* out, double* curvature,
              int gradient, double blend) {
    visit(rows, [&](const auto& X) { sweep(X, lo, hi, t, l, theta, out, curvature, gradient != 0, blend); });
}
void do_closing(Rows rows, i64 lo, i64 hi, Targets t, LossSpec l, const double* base, const double* step,
                const double* theta, const double* dual, double* out) {
    visit(rows, [&](const auto& X) { closing(X, lo, hi, t, l, base, step, theta, dual, out); });
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
        loss.at(VL, l.width, in, a, b, c);
        for (int q = 0; q < now; ++q) value[i + q] = a[q], slope[i + q] = b[q], curvature[i + q] = c[q];
        loss.conjugate(VL, l.width, in, a, inside);
        for (int q = 0; q < now; ++q) conjugate[i + q] = inside[q] != 0.0 ? a[q] : __builtin_inf();
    }
}
void do_scores_k(Rows rows, i64 lo, i64 hi, const double* W, i64 K, double* Z) {
    visit(rows, [&](const auto& X) {
        for (i64 r = lo; r < hi; r += X.chunk()) X.dots_k(r, (int)min64(X.chunk(), hi - r), W, K, Z + (r - lo) * K);
    });
}
void do_softmax_sweep(Rows rows, i64 lo, i64 hi, Classes y, const double* W, double* out, double* p, i64 stride,
                      double* scratch) {
    visit(rows, [&](const auto& X) { softmax_sweep(X, lo, hi, y, W, out, p, stride, scratch); });
}
void do_softmax_hess_vec(Rows rows, i64 lo, i64 hi, Classes y, const double* p, i64 stride, const double* V,
                         double* out, double* scratch) {
    visit(rows, [&](const auto& X) { softmax_hess_vec(X, lo, hi, y, p, stride, V, out, scratch); });
}
void do_softmax_ray(Rows rows, i64 lo, i64 hi, Classes y, const double* W, const double* D, const double* steps,
                    i64 n_steps, double* out, double* scratch) {
    visit(rows, [&](const auto& X) { softmax_ray(X, lo, hi, y, W, D, steps, n_steps, out, scratch); });
}
void do_softmax_cross(i64 lo, i64 hi, Classes y, const double* p, i64 stride, double* out, double* scratch) {
    softmax_cross(lo, hi, y, p, stride, out, scratch);
}
void do_softmax_hessian(Rows rows, i64 lo, i64 hi, Classes y, const double* p, i64 stride, const double* mu,
                        double* out, double* scratch) {
    visit(rows, [&](const auto& X) { softmax_hessian(X, lo, hi, y, p, stride, mu, out, scratch); });
}
void do_softmax_closing(Rows rows, i64 lo, i64 hi, Classes y, const double* base, const double* step, const double* W,
                        const double* bound, const double* dual, double* out, double* scratch) {
    visit(rows, [&](const auto& X) { softmax_closing(X, lo, hi, y, base, step, W, bound, dual, out, scratch); });
}
int do_softmax_chunk(Rows rows, i64 k) {
    return visit(rows, [&](const auto& X) { return X.dense ? (int)min64(X.chunk(), softmax_rows(k)) : 1; });
}
NewtonReport do_softmax_newton(Rows rows, Classes y, NewtonJob job, double* W, double* base, double* step, double* out,
                               double* scratch) {
    return visit(rows, [&](const auto& X) { return SoftmaxNewton(X, y, job, W, scratch).run(base, step, out); });
}
void do_crammer_singer_step(i64 lo, i64 hi, Classes y, const double* z, const double* dz, double t, const double* p0,
                            double sigma, double* p, double* out) {
    crammer_singer_step(lo, hi, y, z, dz, t, p0, sigma, p, out);
}
void do_crammer_singer_gradient(Rows rows, i64 lo, i64 hi, Classes y, const double* p, double* out, double* scratch) {
    visit(rows, [&](const auto& X) { crammer_singer_gradient(X, lo, hi, y, p, out, scratch); });
}
void do_crammer_singer_ascend(Rows rows, i64 k0, i64 k1, Classes y, CdJob job, const double* norms, double* p,
                              double* W, double* state, double* scratch) {
    visit(rows, [&](const auto& X) { crammer_singer_ascend(X, k0, k1, y, job, norms, p, W, state, scratch); });
}
void do_crammer_singer_closing(Rows rows, i64 lo, i64 hi, Classes y, const double* W, const double* bound,
                               const double* dual, double* out, double* scratch) {
    visit(rows, [&](const auto& X) { crammer_singer_closing(X, lo, hi, y, W, bound, dual, out, scratch); });
}
double do_spd_solve(i64 n, const double* A, const double* b, int drop, double* x, double* scratch) {
    Cholesky chol{n, scratch + 2 * n, scratch, 0.0};
    chol.factor(A, drop != 0);
    chol.solve_refined(A, b, x, scratch + n);
    return chol.least;
}
double do_spd_factor(i64 n, const double* A, int drop, double* U, double* scale) {
    Cholesky chol{n, U, scale, 0.0};
    chol.factor(A, drop != 0);
    return chol.least;
}
void do_spd_apply(i64 n, const double* U, const double* scale, const double* b, double* x) {
    const Cholesky chol{n, const_cast<double*>(U), const_cast<double*>(scale), 0.0};
    chol.solve(b, x);
}
NewtonReport do_nnls(i64 m, i64 p, const double* A, const double* f, double tol, int max_steps, double* x, double* r,
                     double* scratch) {
    return Nnls(m, p, A, f, x, r, scratch).run(tol, max_steps);
}
NewtonReport do_newton(Rows rows, Targets t, LossSpec l, NewtonJob job, double* theta, double* base, double* step,
                       double* out, double* scratch) {
    return visit(rows, [&](const auto& X) { return NewtonFit(X, t, l, job, theta, scratch).run(base, step, out); });
}
void do_dual_cd(Rows rows, i64 k0, i64 k1, Targets t, LossSpec l, CdJob job, const double* norms, double* u, double* z,
                double* b, double* theta, double* state) {
    visit(rows, [&](const auto& X) { dual_cd(X, k0, k1, t, l, job, norms, u, z, b, theta, state); });
}
void do_kink_margins(Rows rows, i64 lo, i64 hi, Targets t, LossSpec l, const double* theta, double* v, double* out) {
    visit(rows, [&](const auto& X) { kink_margins(X, lo, hi, t, box_of(l.id), theta, v, out); });
}
void do_sort_rows(Rows rows, i64 lo, i64 hi, Targets t, LossSpec l, const double* theta, double tau, const double* mu,
                  const double* scale, double* v, double* u, double* out) {
    visit(rows, [&](const auto& X) { sort_rows(X, lo, hi, t, box_of(l.id), theta, tau, mu, scale, v, u, out); });
}
void do_ipm_central(i64 lo, i64 hi, LossSpec l, double mu, double* state, i64 stride) {
    central(lo, hi, box_of(l.id), mu, State(state, stride));
}
void do_ipm_gather(Rows rows, i64 lo, i64 hi, Targets t, LossSpec l, double step, double* state, i64 stride, double* h,
                   double* out) {
    visit(rows, [&](const auto& X) { gather(X, lo, hi, t, box_of(l.id), step, State(state, stride), h, out); });
}
double do_ipm_predict(Rows rows, i64 lo, i64 hi, Targets t, const double* dtheta, double* state, i64 stride,
                      double* out) {
    return visit(rows, [&](const auto& X) { return predict(X, lo, hi, t, dtheta, State(state, stride), out); });
}
double do_ipm_correct(Rows rows, i64 lo, i64 hi, Targets t, const double* dtheta, double mu, double* state,
                      i64 stride) {
    return visit(rows, [&](const auto& X) { return correct(X, lo, hi, t, dtheta, mu, State(state, stride)); });
}
int do_crossover(Rows rows, Targets t, LossSpec l, double lam, int intercept, const double* linear, int rounds,
                 double* theta, double* u, double* v, double* scratch) {
    return visit(rows, [&](const auto& X) {
        return (int)Crossover(X, t, box_of(l.id), lam, intercept != 0, linear, theta, u, v, scratch).run(rounds);
    });
}
InteriorReport do_interior(Rows rows, Targets t, LossSpec l, InteriorJob job, double* theta, double* u, double* out,
                           double* scratch) {
    return visit(
        rows, [&](const auto& X) { return InteriorFit(X, t, l, job, theta, scratch, gram_scratch(rows)).run(u, out); });
}
void do_make_feasible(i64 n, Targets t, LossSpec l, int intercept, double* u) {
    make_feasible(n, t, box_of(l.id), intercept != 0, u);
}
void do_shifted(i64 lo, i64 hi, Targets t, LossSpec l, const double* z, double b, double* out) {
    shifted(lo, hi, t, l, z, b, out);
}
void do_part_sweep(Rows rows, i64 lo, i64 hi, Targets t, LossSpec l, const i64* part, i64 parts, const double* theta,
                   double* out, double* curvature) {
    visit(rows, [&](const auto& X) { part_sweep(X, lo, hi, t, l, part, parts, theta, out, curvature); });
}
void do_part_gram(Rows rows, i64 lo, i64 hi, const i64* part, i64 parts, const double* h, const double* mu, double* out,
                  double* scratch) {
    visit(rows, [&](const auto& X) { part_gram(X, lo, hi, part, parts, h, mu, out, scratch); });
}
void do_grid_closing(Rows rows, i64 lo, i64 hi, Targets t, LossSpec l, GridJob job, double* out, double* scratch) {
    visit(rows, [&](const auto& X) { grid_closing(X, lo, hi, t, l, job, out, scratch); });
}
i64 do_quadratic_cd(i64 k, const double* S, double l1, double tol, i64 max_sweeps, double* x, double* slope) {
    return quadratic_cd(k, S, l1, tol, max_sweeps, x, slope);
}
void do_list_dots(Rows rows, const i64* list, i64 count, const double* v, double* out) {
    visit(rows, [&](const auto& X) { list_dots(X, list, count, v, out); });
}
void do_list_add(Rows rows, const i64* list, i64 count, const double* a, double* v) {
    visit(rows, [&](const auto& X) { list_add(X, list, count, a, v); });
}
int do_free_cg(Rows rows, FreeJob job, int steps, double enough, double* x, double* r, double* y, double* state,
               double* product, double* v) {
    return visit(rows, [&](const auto& X) { return free_cg(X, job, steps, enough, x, r, y, state, product, v); });
}
double do_quantile(i64 n, double* x, double* weight, double target) { return quantile(n, x, weight, target); }
void do_shuffle(i64 count, std::uint64_t seed, i64* order) { shuffle(count, seed, order); }
void do_perceptron(Rows rows, const double* sign, PerceptronJob job, double* theta) {
    visit(rows, [&](const auto& X) { perceptron(X, sign, job, theta); });
}
void do_sgd(Rows rows, Classes y, LossSpec l, SgdJob job, const i64* draws, i64 count, double* W, double* sums,
            double* scratch) {
    visit(rows, [&](const auto& X) { sgd(X, y, l, job, draws, count, W, sums, scratch); });
}
void do_losses_k(Rows rows, i64 lo, i64 hi, Classes y, LossSpec l, const double* W, i64 K, const i64* of, double* out,
                 double* scratch) {
    visit(rows, [&](const auto& X) { losses_k(X, lo, hi, y, l, W, K, of, out, scratch); });
}

}  // namespace
}  // namespace LINSEP_ARCH

using namespace LINSEP_ARCH;
extern const Table LINSEP_JOIN(table_, LINSEP_ARCH){
    .name = LINSEP_TEXT(LINSEP_ARCH),
    .sweep = do_sweep,
    .closing = do_closing,
    .gram = do_gram,
    .gram_single = do_gram_single,
    .hess_vec = do_hess_vec,
    .combine = do_combine,
    .moments = do_moments,
    .scores = do_scores,
    .sigmoids = do_sigmoids,
    .softmaxes = do_softmaxes,
    .ray = do_ray,
    .pointwise = do_pointwise,
    .spd_solve = do_spd_solve,
    .nnls = do_nnls,
    .spd_factor = do_spd_factor,
    .spd_apply = do_spd_apply,
    .newton = do_newton,
    .kink_margins = do_kink_margins,
    .sort_rows = do_sort_rows,
    .ipm_central = do_ipm_central,
    .ipm_gather = do_ipm_gather,
    .ipm_predict = do_ipm_predict,
    .ipm_correct = do_ipm_correct,
    .crossover = do_crossover,
    .interior = do_interior,
    .make_feasible = do_make_feasible,
    .not_finite = do_not_finite,
    .row_norms = do_row_norms,
    .reaches = do_reaches,
    .scores_k = do_scores_k,
    .softmax_sweep = do_softmax_sweep,
    .softmax_hess_vec = do_softmax_hess_vec,
    .softmax_ray = do_softmax_ray,
    .softmax_cross = do_softmax_cross,
    .softmax_hessian = do_softmax_hessian,
    .softmax_closing = do_softmax_closing,
    .softmax_chunk = do_softmax_chunk,
    .softmax_newton = do_softmax_newton,
    .crammer_singer_step = do_crammer_singer_step,
    .crammer_singer_gradient = do_crammer_singer_gradient,
    .crammer_singer_ascend = do_crammer_singer_ascend,
    .crammer_singer_closing = do_crammer_singer_closing,
    .dual_cd = do_dual_cd,
    .shifted = do_shifted,
    .part_sweep = do_part_sweep,
    .part_gram = do_part_gram,
    .grid_closing = do_grid_closing,
    .quadratic_cd = do_quadratic_cd,
    .shuffle = do_shuffle,
    .list_dots = do_list_dots,
    .list_add = do_list_add,
    .free_cg = do_free_cg,
    .quantile = do_quantile,
    .perceptron = do_perceptron,
    .sgd = do_sgd,
    .losses_k = do_losses_k,
};

}  // namespace linsep
