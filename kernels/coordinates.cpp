// Everything that moves one coordinate at a time: dual ascent, its free rows, lasso, the multiclass hinge.
// Compiled once per instruction set: see kernels.cpp.
#include "column_newton.hpp"
#include "crammer_singer.hpp"
#include "dual_cd.hpp"
#include "intercept.hpp"
#include "lasso_newton.hpp"
#include "quadratic_cd.hpp"
#include "table.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

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
void do_dual_cd(Rows rows, i64 k0, i64 k1, Targets t, LossSpec l, CdJob job, const double* norms, double* u, double* z,
                double* b, double* theta, double* state) {
    visit(rows, [&](const auto& X) { dual_cd(X, k0, k1, t, l, job, norms, u, z, b, theta, state); });
}
void do_class_sums(Rows rows, i64 lo, i64 hi, Targets t, double* norms, double* out) {
    visit(rows, [&](const auto& X) { class_sums(X, lo, hi, t, norms, out); });
}
void do_two_scores(Rows rows, i64 lo, i64 hi, const double* a, const double* b, const double* pairs, double* za,
                   double* zb) {
    visit(rows, [&](const auto& X) { two_scores(X, lo, hi, a, b, pairs, za, zb); });
}
void do_shifted(i64 lo, i64 hi, Targets t, LossSpec l, const double* z, double b, double* out) {
    shifted(lo, hi, t, l, z, b, out);
}
i64 do_quadratic_cd(i64 k, const double* S, double l1, double tol, i64 max_sweeps, double* x, double* slope) {
    return quadratic_cd(k, S, l1, tol, max_sweeps, x, slope);
}
NewtonReport do_lasso_newton(Rows rows, Targets t, LossSpec l, LassoJob job, double* theta, double* base, double* step,
                             double* out, double* scratch, i64* lists) {
    return visit(rows,
                 [&](const auto& X) { return LassoFit(X, t, l, job, theta, scratch, lists).run(base, step, out); });
}
ColumnReport do_column_newton(Rows columns, Targets t, LossSpec l, ColumnJob job, double* theta, double* z,
                              double* base, double* step, double* scratch, i64* lists) {
    return visit(columns,
                 [&](const auto& X) { return ColumnFit(X, t, l, job, theta, z, scratch, lists).run(base, step); });
}
void do_list_dots(Rows rows, const i64* list, i64 count, const double* v, double* out) {
    visit(rows, [&](const auto& X) { list_dots(X, list, count, v, out); });
}
void do_list_add(Rows rows, const i64* list, i64 count, const double* a, double* v) {
    visit(rows, [&](const auto& X) { list_add(X, list, count, a, v); });
}
Settled do_best_intercept(i64 n, Targets t, LossSpec l, int free, const double* z, double b, double reach, double fine,
                          double* room) {
    return best_intercept(n, t, l, free != 0, z, b, reach, fine, room);
}
Settled do_best_among(const i64* rows, i64 count, Targets t, LossSpec l, int free, const double* z, const double* u,
                      double e, double b, double reach, double fine, double* room) {
    return best_among(rows, count, t, l, free != 0, z, u, e, b, reach, fine, room);
}
void do_arrange(Rows rows, i64 count, const i64* list, std::uint64_t seed, i64* order, i64* spare) {
    visit(rows, [&](const auto& X) { arrange(X, count, list, seed, order, spare); });
}
void do_balance(i64 n, Targets t, LossSpec l, const double* z, const double* seen, double* u, double* room) {
    balance(n, t, l, z, seen, u, room);
}
i64 do_remaining(i64 count, i64* rows) { return remaining(count, rows); }
double do_quantile(i64 n, double* x, double* weight, double target) { return quantile(n, x, weight, target); }
void do_shuffle(i64 count, std::uint64_t seed, i64* order) { shuffle(count, seed, order); }

}  // namespace

void fill_coordinates(Table& table) {
    table.dual_cd = do_dual_cd;
    table.class_sums = do_class_sums;
    table.two_scores = do_two_scores;
    table.shuffle = do_shuffle;
    table.list_dots = do_list_dots;
    table.list_add = do_list_add;
    table.quantile = do_quantile;
    table.remaining = do_remaining;
    table.best_intercept = do_best_intercept;
    table.best_among = do_best_among;
    table.arrange = do_arrange;
    table.balance = do_balance;
    table.shifted = do_shifted;
    table.quadratic_cd = do_quadratic_cd;
    table.lasso_newton = do_lasso_newton;
    table.column_newton = do_column_newton;
    table.crammer_singer_step = do_crammer_singer_step;
    table.crammer_singer_gradient = do_crammer_singer_gradient;
    table.crammer_singer_ascend = do_crammer_singer_ascend;
    table.crammer_singer_closing = do_crammer_singer_closing;
}

}  // namespace linsep::LINSEP_ARCH
