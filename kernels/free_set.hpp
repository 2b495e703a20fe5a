// Work on a list of rows: those whose dual variable is strictly inside its interval.
//
// With all other u fixed, the augmented dual of dual_cd.hpp is a quadratic of the signed masses p = s sign u of the
// free rows, with Hessian
//   A = K/lam + stiffness 1 1' + diag(ridge),   K = X_F X_F',
// (K of the centred rows where there is a centre), ridge = (curvature of l*)/s per row. A system in A is solved by conjugate gradients, whose products cost two visits
// to the free rows and none to the others.
#pragma once
#include "dual_cd.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

constexpr i64 kAhead = 3;  // rows fetched before their turn: the gaps of the list defeat the hardware

template <class R>
void list_dots(const R& X, const i64* list, i64 count, const double* v, double* out) {
    for (i64 k = 0; k < count; ++k) {
        if (k + kAhead < count) fetch_row(X, list[k + kAhead]);
        out[k] = X.dot_row(list[k], v);
    }
}
template <class R>
void list_add(const R& X, const i64* list, i64 count, const double* a, double* v) {
    for (i64 k = 0; k < count; ++k) {
        if (k + kAhead < count) fetch_row(X, list[k + kAhead]);
        if (a[k] != 0.0) X.axpy(list[k], a[k], v);
    }
}

// Goes on with A x = r, preconditioned by the diagonal, from the state of the call before: the solution x, the
// residual r, the search direction y and state = {r' M^-1 r, or 0 before the first step; |search|}. Ends after
// `steps` steps or when r' M^-1 r <= enough; returns the steps made.
template <class R>
int free_cg(const R& X, const FreeJob& job, int steps, double enough, double* x, double* r, double* y, double* state,
            double* product, double* v) {
    const i64 n = job.count;
    const auto conditioned = [&] {
        double sum = 0;
        for (i64 k = 0; k < n; ++k) sum += r[k] * r[k] * job.inverse[k];
        return sum;
    };
    if (state[0] == 0.0) {
        for (i64 k = 0; k < n; ++k) y[k] = r[k] * job.inverse[k];
        state[0] = conditioned();
    }
    for (int step = 0; step < steps; ++step) {
        if (!(state[0] > enough)) return step;
        for (i64 j = 0; j < X.d; ++j) v[j] = 0.0;
        list_add(X, job.list, n, y, v);
        list_dots(X, job.list, n, v, product);
        double sum = 0, shared = 0, curved = 0;
        for (i64 k = 0; k < n; ++k) sum += y[k];
        for (i64 k = 0; job.along && k < n; ++k) shared += job.along[k] * y[k];
        const double same = job.stiffness * sum + (job.centre * sum - shared) / job.lam;
        for (i64 k = 0; k < n; ++k) {
            const double along = job.along ? job.along[k] * sum : 0.0;
            product[k] = (product[k] - along) / job.lam + same + job.ridge[k] * y[k];
            curved += y[k] * product[k];
        }
        if (!(curved > 0.0)) return step;  // flat to rounding: nothing to gain
        const double length = state[0] / curved;
        for (i64 k = 0; k < n; ++k) {
            x[k] += length * y[k];
            r[k] -= length * product[k];
        }
        const double now = conditioned(), ratio = now / state[0];
        for (i64 k = 0; k < n; ++k) y[k] = r[k] * job.inverse[k] + ratio * y[k];
        state[0] = now;
    }
    return steps;
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
