// The interior point method: passes over the rows, crossover, and a complete fit.
// Compiled once per instruction set: see core/dispatch.cpp.
#include "core/dispatch.hpp"
#include "interior/fit.hpp"

namespace linsep::LINSEP_ARCH {

void fill_interior(Table& table) {
#include "interior/kernels.def"
}

}  // namespace linsep::LINSEP_ARCH
