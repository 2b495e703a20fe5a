#pragma once
// The parts of a Table, one source file each.
#include "core/api.hpp"

namespace linsep::LINSEP_ARCH {

void fill_sums(Table& table);
void fill_newton(Table& table);
void fill_softmax(Table& table);
void fill_interior(Table& table);
void fill_dual(Table& table);
void fill_l1(Table& table);
void fill_crammer_singer(Table& table);
void fill_grid(Table& table);
void fill_online(Table& table);

}  // namespace linsep::LINSEP_ARCH
