// Fits with an L1 penalty: with the full Hessian, column by column, and the quadratic models of both.
// Compiled once per instruction set: see core/dispatch.cpp.
#include "core/dispatch.hpp"
#include "l1/column_fit.hpp"
#include "l1/fit.hpp"
#include "l1/quadratic_cd.hpp"

namespace linsep::LINSEP_ARCH {

void fill_l1(Table& table) {
#include "l1/kernels.def"
}

}  // namespace linsep::LINSEP_ARCH
