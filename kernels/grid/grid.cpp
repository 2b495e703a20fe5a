// Passes for many models on the same rows.
// Compiled once per instruction set: see core/dispatch.cpp.
#include "core/dispatch.hpp"
#include "grid/closing.hpp"
#include "grid/passes.hpp"

namespace linsep::LINSEP_ARCH {

void fill_grid(Table& table) {
#include "grid/kernels.def"
}

}  // namespace linsep::LINSEP_ARCH
