// Macros with which a folder of kernels fills its part of the Table of one instruction set:
//
//     void fill_sums(Table& table) {
//     #include "sums/kernels.def"
//     }
//
// assigns every kernel declared in the list; ROWS_KERNELs are instantiated for all storage formats.
#pragma once
#include "core/any_rows.hpp"
#include "core/arena.hpp"

#define KERNEL(name, ...) table.name = [](auto... arguments) { return name(arguments...); };
#define DRIVER(name, ...) table.name = [](Rows rows, auto... arguments) { return name(AnyRows(rows), arguments...); };
#define ROWS_KERNEL(name, ...)                                                    \
    table.name = [](Rows rows, auto... arguments) {                               \
        return visit(rows, [&](const auto& X) { return name(X, arguments...); }); \
    };

namespace linsep::LINSEP_ARCH {

void fill_dual(Table& table);
void fill_grid(Table& table);
void fill_interior(Table& table);
void fill_l1(Table& table);
void fill_newton(Table& table);
void fill_online(Table& table);
void fill_softmax(Table& table);
void fill_crammer_singer(Table& table);
void fill_sums(Table& table);

}  // namespace linsep::LINSEP_ARCH
