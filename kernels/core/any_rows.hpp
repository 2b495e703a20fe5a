// Rows of any storage format, for complete fits. These loop over iterations, not rows, so they are compiled once per
// instruction set and call every pass through the Table: X.sweep(lo, hi, ...) runs the kernel `sweep` on these rows.
#pragma once
#include "core/kernels.hpp"
#include "core/rows.hpp"

namespace linsep::LINSEP_ARCH {

// The Table of this instruction set (core/dispatch.cpp).
const Table& own_table();

namespace {

struct AnyRows {
    Rows rows;
    const Table* table;
    i64 n, d;
    bool dense;

    AnyRows(const Rows& r) : rows(r), table(&own_table()), n(r.n), d(r.d), dense(is_dense(r.store)) {}

    i64 n_entries() const {
        return visit(rows, [](const auto& X) { return (i64)X.n_entries(); });
    }
    // z[i] = x_i . w + b for rows r ... r + nr - 1
    void dots(i64 r, i64 nr, const double* theta, double* z) const { table->scores(rows, r, r + nr, theta, z); }
    void axpy(i64 i, double a, double* out) const { table->list_add(rows, &i, 1, &a, out); }

#define KERNEL(name, ...)
#define DRIVER(name, ...)
#define ROWS_KERNEL(name, ...)                  \
    template <class... A>                       \
    auto name(A... arguments) const {           \
        return table->name(rows, arguments...); \
    }
#include "dual/kernels.def"
#include "interior/kernels.def"
#include "softmax/kernels.def"
#include "sums/kernels.def"
#undef ROWS_KERNEL
#undef DRIVER
#undef KERNEL
};

}  // namespace
}  // namespace linsep::LINSEP_ARCH
