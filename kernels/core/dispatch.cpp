// The Table of one instruction set, LINSEP_ARCH. This file and those it calls are compiled once per set.
// None of them may use a template of the standard library: the linker would merge the copies of different sets.
// The table is filled on request, not when the module is loaded: a machine without the set must not execute its code.
#include "core/dispatch.hpp"

#define LINSEP_TEXT_(x) #x
#define LINSEP_TEXT(x) LINSEP_TEXT_(x)
#define LINSEP_JOIN_(a, b) a##b
#define LINSEP_JOIN(a, b) LINSEP_JOIN_(a, b)

namespace linsep {

Table LINSEP_JOIN(table_, LINSEP_ARCH)() {
    Table table{};
    table.name = LINSEP_TEXT(LINSEP_ARCH);
    LINSEP_ARCH::fill_dual(table);
    LINSEP_ARCH::fill_grid(table);
    LINSEP_ARCH::fill_interior(table);
    LINSEP_ARCH::fill_l1(table);
    LINSEP_ARCH::fill_newton(table);
    LINSEP_ARCH::fill_online(table);
    LINSEP_ARCH::fill_softmax(table);
    LINSEP_ARCH::fill_crammer_singer(table);
    LINSEP_ARCH::fill_sums(table);
    return table;
}

namespace LINSEP_ARCH {

const Table& own_table() {
    static const Table table = LINSEP_JOIN(table_, LINSEP_ARCH)();
    return table;
}

}  // namespace LINSEP_ARCH
}  // namespace linsep
