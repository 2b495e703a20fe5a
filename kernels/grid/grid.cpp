// Passes that serve many models at once.
// Compiled once per instruction set: see core/dispatch.cpp.
#include "core/dispatch.hpp"
#include "grid/closing.hpp"
#include "grid/passes.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

template <class R>
void grid_closing(const R& X, i64 lo, i64 hi, const Targets& t, LossSpec spec, const GridJob& job, double* out,
                  Arena* arena) {
    const auto of = [&](auto loss) { close_grid<decltype(loss)>(X, lo, hi, t, spec, job, out, arena); };
    switch (spec.id) {
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
#include "grid/kernels.def"
}

}  // namespace linsep::LINSEP_ARCH
