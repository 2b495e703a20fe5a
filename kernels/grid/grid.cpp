// Passes that serve many models at once.
// Compiled once per instruction set: see core/dispatch.cpp.
#include "core/dispatch.hpp"
#include "grid/closing.hpp"
#include "grid/passes.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

void do_part_sweep(Rows rows, i64 lo, i64 hi, Targets t, LossSpec l, const i64* part, i64 parts, const double* theta,
                   double* out, double* curvature, double* moments) {
    visit(rows, [&](const auto& X) { part_sweep(X, lo, hi, t, l, part, parts, theta, out, curvature, moments); });
}
void do_part_gram(Rows rows, i64 lo, i64 hi, const i64* part, i64 parts, const double* h, const double* mu, bool single,
                  double* out, double* scratch) {
    visit(rows, [&](const auto& X) { part_gram(X, lo, hi, part, parts, h, mu, single, out, scratch); });
}
template <class L>
void close_grid(Rows rows, i64 lo, i64 hi, Targets t, LossSpec l, GridJob job, double* out, double* scratch,
                i64* lists) {
    visit(rows, [&](const auto& X) { grid_closing<L>(X, lo, hi, t, l, job, out, scratch, lists); });
}
void do_grid_closing(Rows rows, i64 lo, i64 hi, Targets t, LossSpec l, GridJob job, double* out, double* scratch,
                     i64* lists) {
    auto of = [&](auto loss) { close_grid<decltype(loss)>(rows, lo, hi, t, l, job, out, scratch, lists); };
    switch (l.id) {
        case LossId::logistic:
            return of(Logistic{});
        case LossId::exponential:
            return of(Exponential{});
        case LossId::squared:
            return of(Squared{});
        case LossId::squared_hinge:
            return of(SquaredHinge{});
        case LossId::huberised_hinge:
            return of(HuberisedHinge{});
        case LossId::huber:
            return of(Huber{});
        case LossId::hinge:
            return of(Hinge{});
        case LossId::absolute:
            return of(Absolute{});
        default:
            return of(PerceptronLoss{});
    }
}

}  // namespace

void fill_grid(Table& table) {
    table.part_sweep = do_part_sweep;
    table.part_gram = do_part_gram;
    table.grid_closing = do_grid_closing;
}

}  // namespace linsep::LINSEP_ARCH
