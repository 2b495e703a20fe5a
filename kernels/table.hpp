#pragma once
// The parts of a Table, one source file each.
#include "api.hpp"

namespace linsep::LINSEP_ARCH {

void fill_sums(Table& table);
void fill_newton(Table& table);
void fill_softmax(Table& table);
void fill_interior(Table& table);
void fill_coordinates(Table& table);
void fill_grid(Table& table);
void fill_online(Table& table);

}  // namespace linsep::LINSEP_ARCH
