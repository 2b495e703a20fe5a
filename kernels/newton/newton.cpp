// A whole fit by Newton's method, and the small dense systems of every solver.
// Compiled once per instruction set: see core/dispatch.cpp.
#include <cstdlib>

#include "core/block_cholesky.hpp"
#include "core/dispatch.hpp"
#include "core/nnls.hpp"
#include "newton/fit.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

constexpr i64 kInBlocks = 256;  // order from which a factor is made in blocks

double do_spd_solve(i64 n, const double* A, const double* b, int drop, double* x, double* scratch) {
    Cholesky chol{n, scratch + 2 * n, scratch, 0.0};
    chol.factor(A, drop != 0);
    chol.solve_refined(A, b, x, scratch + n);
    return chol.least;
}
double do_spd_factor(i64 n, const double* A, int drop, double* U, double* scale) {
    Cholesky chol{n, U, scale, 0.0};
    const std::size_t room = sizeof(double) * (std::size_t)block_pack(n);
    double* pack = !drop && n >= kInBlocks ? static_cast<double*>(std::malloc(room)) : nullptr;
    if (!pack) {
        chol.factor(A, drop != 0);
        return chol.least;
    }
    std::memcpy(U, A, sizeof(double) * (std::size_t)(n * n));
    factor_in_blocks(chol, pack);
    std::free(pack);
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

}  // namespace

void fill_newton(Table& table) {
    table.newton = do_newton;
    table.spd_solve = do_spd_solve;
    table.spd_factor = do_spd_factor;
    table.spd_apply = do_spd_apply;
    table.nnls = do_nnls;
}

}  // namespace linsep::LINSEP_ARCH
