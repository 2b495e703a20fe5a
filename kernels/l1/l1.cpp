// Fits with an absolute penalty: by Hessians, by columns, and the quadratic models of both.
// Compiled once per instruction set: see core/dispatch.cpp.
#include "core/dispatch.hpp"
#include "l1/column_fit.hpp"
#include "l1/fit.hpp"
#include "l1/quadratic_cd.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

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

}  // namespace

void fill_l1(Table& table) {
    table.quadratic_cd = do_quadratic_cd;
    table.lasso_newton = do_lasso_newton;
    table.column_newton = do_column_newton;
}

}  // namespace linsep::LINSEP_ARCH
