// Passes of the multiclass hinge of Crammer and Singer.
// Compiled once per instruction set: see core/dispatch.cpp.
#include "softmax/crammer_singer.hpp"

#include "core/dispatch.hpp"

namespace linsep::LINSEP_ARCH {

void fill_crammer_singer(Table& table) {
#include "softmax/crammer_singer.def"
}

}  // namespace linsep::LINSEP_ARCH
