// Perceptron and stochastic gradient descent.
// Compiled once per instruction set: see core/dispatch.cpp.
#include "core/dispatch.hpp"
#include "online/passes.hpp"

namespace linsep::LINSEP_ARCH {

void fill_online(Table& table) {
#include "online/kernels.def"
}

}  // namespace linsep::LINSEP_ARCH
