// The passes of the multiclass hinge (Crammer and Singer).
// Compiled once per instruction set: see core/dispatch.cpp.
#include "softmax/crammer_singer.hpp"

#include "core/dispatch.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

void do_crammer_singer_step(i64 lo, i64 hi, Classes y, const double* z, const double* dz, double t, const double* p0,
                            double sigma, double* p, double* out) {
    crammer_singer_step(lo, hi, y, z, dz, t, p0, sigma, p, out);
}
void do_crammer_singer_gradient(Rows rows, i64 lo, i64 hi, Classes y, const double* p, double* out, double* scratch) {
    visit(rows, [&](const auto& X) { crammer_singer_gradient(X, lo, hi, y, p, out, scratch); });
}
void do_crammer_singer_ascend(Rows rows, i64 k0, i64 k1, Classes y, CdJob job, const double* norms, double* p,
                              double* W, double* state, double* scratch) {
    visit(rows, [&](const auto& X) { crammer_singer_ascend(X, k0, k1, y, job, norms, p, W, state, scratch); });
}
void do_crammer_singer_closing(Rows rows, i64 lo, i64 hi, Classes y, const double* W, const double* bound,
                               const double* dual, double* out, double* scratch) {
    visit(rows, [&](const auto& X) { crammer_singer_closing(X, lo, hi, y, W, bound, dual, out, scratch); });
}

}  // namespace

void fill_crammer_singer(Table& table) {
    table.crammer_singer_step = do_crammer_singer_step;
    table.crammer_singer_gradient = do_crammer_singer_gradient;
    table.crammer_singer_ascend = do_crammer_singer_ascend;
    table.crammer_singer_closing = do_crammer_singer_closing;
}

}  // namespace linsep::LINSEP_ARCH
