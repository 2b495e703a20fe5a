// The passes of the softmax loss, and a whole fit of it.
// Compiled once per instruction set: see core/dispatch.cpp.
#include "core/dispatch.hpp"
#include "softmax/directions.hpp"
#include "softmax/fit.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

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
int do_softmax_steps(Rows rows, Classes y, StepJob job, const double* p, i64 stride, const double* g, double* D,
                     double* R, double* first, bool* done, double* scratch) {
    return visit(rows,
                 [&](const auto& X) { return SoftmaxSteps(X, y, job, scratch).run(p, stride, g, D, R, first, done); });
}

}  // namespace

void fill_softmax(Table& table) {
    table.softmax_sweep = do_softmax_sweep;
    table.softmax_hess_vec = do_softmax_hess_vec;
    table.softmax_ray = do_softmax_ray;
    table.softmax_cross = do_softmax_cross;
    table.softmax_hessian = do_softmax_hessian;
    table.softmax_closing = do_softmax_closing;
    table.softmax_chunk = do_softmax_chunk;
    table.softmax_newton = do_softmax_newton;
    table.softmax_steps = do_softmax_steps;
}

}  // namespace linsep::LINSEP_ARCH
