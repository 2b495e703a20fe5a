// Value, derivatives and conjugate of every loss on a chunk of rows.
// Compiled once per instruction set: see core/dispatch.cpp.
#include "core/losses.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

template <class L>
void loss_at(int n, Shape shape, const double* m, double* value, double* slope, double* curvature) {
    for (int i = 0; i < n; i += VL) {
        const Point p = L::at(load(m + i), shape);
        store(value + i, p.value);
        store(slope + i, p.slope);
        store(curvature + i, p.curvature);
    }
}
template <class L>
void loss_conjugate(int n, Shape shape, const double* u, double* value, double* inside) {
    for (int i = 0; i < n; i += VL) {
        const Conjugate c = L::conjugate(load(u + i), shape);
        store(value + i, c.value);
        store(inside + i, select(c.inside, splat(1.0), vd{}));
    }
}
template <class L>
void enclose_loss(int n, Shape shape, const double* m, const double* e, double* value, double* steepest) {
    for (int i = 0; i < n; i += VL) {
        const vd at = load(m + i);
        const Point p = L::at(at, shape);
        store(value + i, p.value);
        store(steepest + i, L::steepest(p, at, load(e + i), shape));
    }
}
template <class L>
void loss_derivatives(int n, Shape shape, const double* m, double* slope, double* curvature) {
    for (int i = 0; i < n; i += VL) {
        const Point p = L::at(load(m + i), shape);
        store(slope + i, p.slope);
        store(curvature + i, p.curvature);
    }
}
template <class L>
constexpr LossOps ops_of() {
    return {loss_at<L>, loss_conjugate<L>, loss_derivatives<L>, enclose_loss<L>};
}

}  // namespace

LossOps ops(LossId id) {
    return with_loss(id, [](auto loss) { return ops_of<decltype(loss)>(); });
}

}  // namespace linsep::LINSEP_ARCH
