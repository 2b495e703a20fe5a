// Table of all kernels of one instruction set. Each folder declares its kernels in a list (kernels.def):
//   ROWS_KERNEL(name, result(Rows, arguments))   the function template name(X, arguments), for any storage format
//   DRIVER(name, result(Rows, arguments))        the function name(X, arguments), a complete fit on AnyRows
//                                                (core/any_rows.hpp)
//   KERNEL(name, result(arguments))              the function name(arguments), which reads no rows
// Kernels work on rows [lo, hi), are single-threaded unless their job has a Helper, and ADD to their outputs.
#pragma once
#include "core/api.hpp"

namespace linsep {

template <class Signature>
using Function = Signature*;

struct Arena;

#define KERNEL(name, ...) Function<__VA_ARGS__> name;
#define ROWS_KERNEL KERNEL
#define DRIVER KERNEL
struct Table {
    const char* name;
#include "dual/kernels.def"
#include "grid/kernels.def"
#include "interior/kernels.def"
#include "l1/kernels.def"
#include "newton/kernels.def"
#include "online/kernels.def"
#include "softmax/crammer_singer.def"
#include "softmax/kernels.def"
#include "sums/kernels.def"
};
#undef DRIVER
#undef ROWS_KERNEL
#undef KERNEL

Table table_base();
#ifdef LINSEP_X86
Table table_avx2();
Table table_avx512();
#endif

}  // namespace linsep
