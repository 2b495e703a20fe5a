// The passes of the interior point method, its crossover, and a whole fit by it.
// Compiled once per instruction set: see core/dispatch.cpp.
#include "core/dispatch.hpp"
#include "interior/fit.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

void do_kink_margins(Rows rows, i64 lo, i64 hi, Targets t, LossSpec l, const double* theta, double* v, double* out) {
    visit(rows, [&](const auto& X) { kink_margins(X, lo, hi, t, box_of(l), theta, v, out); });
}
void do_sort_rows(Rows rows, i64 lo, i64 hi, Targets t, LossSpec l, const double* theta, double tau, const double* mu,
                  const double* scale, double* v, double* u, double* out) {
    visit(rows, [&](const auto& X) { sort_rows(X, lo, hi, t, box_of(l), theta, tau, mu, scale, v, u, out); });
}
void do_ipm_central(i64 lo, i64 hi, LossSpec l, double mu, double* state, i64 stride) {
    central(lo, hi, box_of(l), mu, State(state, stride));
}
void do_ipm_gather(Rows rows, i64 lo, i64 hi, Targets t, LossSpec l, double step, double* state, i64 stride, double* h,
                   double* out) {
    visit(rows, [&](const auto& X) { gather(X, lo, hi, t, box_of(l), step, State(state, stride), h, out); });
}
double do_ipm_predict(Rows rows, i64 lo, i64 hi, Targets t, const double* dtheta, double* state, i64 stride,
                      double* out) {
    return visit(rows, [&](const auto& X) { return predict(X, lo, hi, t, dtheta, State(state, stride), out); });
}
double do_ipm_correct(Rows rows, i64 lo, i64 hi, Targets t, const double* dtheta, double mu, double* state,
                      i64 stride) {
    return visit(rows, [&](const auto& X) { return correct(X, lo, hi, t, dtheta, mu, State(state, stride)); });
}
void do_ipm_recentre(Rows rows, i64 lo, i64 hi, Targets t, double step, double mu, double* state, i64 stride,
                     double* out) {
    visit(rows, [&](const auto& X) { recentre(X, lo, hi, t, step, mu, State(state, stride), out); });
}
double do_ipm_attempt(Rows rows, i64 lo, i64 hi, Targets t, const double* dtheta, double step, double mu, double* state,
                      i64 stride) {
    return visit(rows, [&](const auto& X) { return attempt(X, lo, hi, t, dtheta, step, mu, State(state, stride)); });
}
void do_ipm_adopt(i64 lo, i64 hi, Targets t, double step, double mu, double* state, i64 stride) {
    adopt(lo, hi, t, step, mu, State(state, stride));
}
int do_crossover(Rows rows, Targets t, LossSpec l, double lam, int intercept, const double* linear, int rounds,
                 double* theta, double* u, double* v, double* scratch) {
    return visit(rows, [&](const auto& X) {
        return (int)Crossover(X, t, box_of(l), lam, intercept != 0, linear, theta, u, v, scratch).run(rounds);
    });
}
InteriorReport do_interior(Rows rows, Targets t, LossSpec l, InteriorJob job, double* theta, double* u, double* out,
                           double* scratch) {
    return visit(
        rows, [&](const auto& X) { return InteriorFit(X, t, l, job, theta, scratch, gram_scratch(rows)).run(u, out); });
}
void do_make_feasible(i64 n, Targets t, LossSpec l, int intercept, double* u) {
    make_feasible(n, t, box_of(l), intercept != 0, u);
}

}  // namespace

void fill_interior(Table& table) {
    table.kink_margins = do_kink_margins;
    table.sort_rows = do_sort_rows;
    table.ipm_central = do_ipm_central;
    table.ipm_gather = do_ipm_gather;
    table.ipm_predict = do_ipm_predict;
    table.ipm_correct = do_ipm_correct;
    table.ipm_recentre = do_ipm_recentre;
    table.ipm_attempt = do_ipm_attempt;
    table.ipm_adopt = do_ipm_adopt;
    table.crossover = do_crossover;
    table.interior = do_interior;
    table.make_feasible = do_make_feasible;
}

}  // namespace linsep::LINSEP_ARCH
