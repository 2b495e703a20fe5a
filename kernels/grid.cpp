// Passes that serve many models at once.
// Compiled once per instruction set: see kernels.cpp.
#include "grid.hpp"

#include "table.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

void do_part_sweep(Rows rows, i64 lo, i64 hi, Targets t, LossSpec l, const i64* part, i64 parts, const double* theta,
                   double* out, double* curvature) {
    visit(rows, [&](const auto& X) { part_sweep(X, lo, hi, t, l, part, parts, theta, out, curvature); });
}
void do_part_gram(Rows rows, i64 lo, i64 hi, const i64* part, i64 parts, const double* h, const double* mu, bool single,
                  double* out, double* scratch) {
    visit(rows, [&](const auto& X) { part_gram(X, lo, hi, part, parts, h, mu, single, out, scratch); });
}
void do_grid_closing(Rows rows, i64 lo, i64 hi, Targets t, LossSpec l, GridJob job, double* out, double* scratch) {
    visit(rows, [&](const auto& X) { grid_closing(X, lo, hi, t, l, job, out, scratch); });
}

}  // namespace

void fill_grid(Table& table) {
    table.part_sweep = do_part_sweep;
    table.part_gram = do_part_gram;
    table.grid_closing = do_grid_closing;
}

}  // namespace linsep::LINSEP_ARCH
