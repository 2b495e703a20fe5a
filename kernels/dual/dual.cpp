// Dual coordinate ascent: epochs over the rows, the intercept, and the row kernels that its driver (dual/ascent.cpp)
// calls. Compiled once per instruction set: see core/dispatch.cpp.
#include "core/dispatch.hpp"
#include "dual/coordinate_ascent.hpp"
#include "dual/intercept.hpp"

namespace linsep::LINSEP_ARCH {

void fill_dual(Table& table) {
#include "dual/kernels.def"
}

}  // namespace linsep::LINSEP_ARCH
