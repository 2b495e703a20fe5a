// A complete fit by Newton's method, and small dense linear systems for all solvers.
// Compiled once per instruction set: see core/dispatch.cpp.
#include <cstring>

#include "core/arena.hpp"
#include "core/block_cholesky.hpp"
#include "core/dispatch.hpp"
#include "core/nnls.hpp"
#include "newton/fit.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

constexpr i64 kInBlocks = 256;  // order from which the blocked factorisation is used

double spd_solve(i64 n, const double* A, const double* b, bool drop, double* x, double* scratch) {
    Cholesky chol{n, scratch + 2 * n, scratch, 0.0};
    chol.factor(A, drop);
    chol.solve_refined(A, b, x, scratch + n);
    return chol.least;
}
double spd_factor(i64 n, const double* A, bool drop, double* U, double* scale) {
    Cholesky chol{n, U, scale, 0.0};
    const Allocated<double> pack(!drop && n >= kInBlocks ? block_pack(n) : 0);
    if (!pack.at) {
        chol.factor(A, drop);
        return chol.least;
    }
    std::memcpy(U, A, sizeof(double) * (std::size_t)(n * n));
    factor_in_blocks(chol, pack.at);
    return chol.least;
}
void spd_apply(i64 n, const double* U, const double* scale, const double* b, double* x) {
    const Cholesky chol{n, const_cast<double*>(U), const_cast<double*>(scale), 0.0};
    chol.solve(b, x);
}

}  // namespace

void fill_newton(Table& table) {
#include "newton/kernels.def"
}

}  // namespace linsep::LINSEP_ARCH
