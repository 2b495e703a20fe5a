// The Newton system of the softmax loss, H D = -g, by preconditioned conjugate gradients in one call, for problems so
// small that Python would take as long between two products as a product.
// src/linsep/solvers/multiclass/softmax_directions.py is the same method for problems of any size, and describes it.
//
// g, D, R, .. are (d + 1, K). The preconditioner M^-1 has one block for each class, or one for all, in the coordinates
// (x - mu, 1), given by Cholesky factors (core/cholesky.hpp).
#pragma once
#include "core/any_rows.hpp"
#include "core/arena.hpp"
#include "core/cholesky.hpp"
#include "softmax/passes.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

struct SoftmaxSteps {
    const AnyRows& X;
    Classes y;
    StepJob job;
    i64 d, order, k, K, size;
    TwoParts rows;
    double *Q, *Y, *HQ, *other, *from, *to, *work;

    SoftmaxSteps(const AnyRows& table, const Classes& classes, const StepJob& j, Arena* arena)
        : X(table),
          y(classes),
          job(j),
          d(table.d),
          order(table.d + 1),
          k(classes.k),
          K(padded_classes(classes.k)),
          size(order * K),
          rows(halves(table, j.helper)),
          Q(arena->take(size)),
          Y(arena->take(size)),
          HQ(arena->take(size)),
          other(arena->take(size)),
          from(arena->take(order)),
          to(arena->take(order)),
          work(arena->take(2 * softmax_scratch(X.rows, k))) {}

    void zero_sum(double* a) const {
        for (i64 j = 0; j < order; ++j) {
            double sum = 0;
            for (i64 c = 0; c < k; ++c) sum += a[j * K + c];
            for (i64 c = 0; c < k; ++c) a[j * K + c] -= sum / (double)k;
        }
    }
    // Y = M^-1 r, projected to sum zero over the classes
    void precondition(const double* r) {
        for (i64 j = 0; j < size; ++j) Y[j] = 0.0;
        for (i64 c = 0; c < k; ++c) {
            const i64 block = job.blocks > 1 ? c : 0;
            const double b = r[d * K + c];
            for (i64 j = 0; j < d; ++j) from[j] = r[j * K + c] - job.mu[j] * b;
            from[d] = b;
            Cholesky{order, const_cast<double*>(job.U) + block * order * order,
                     const_cast<double*>(job.scale) + block * order, 0.0}
                .solve(from, to);
            for (i64 j = 0; j < order; ++j) Y[j * K + c] = to[j];
            Y[d * K + c] -= dot_n(job.mu, to, d);
        }
        zero_sum(Y);
    }
    // HQ = H Q
    void product(const double* p, i64 stride) {
        const i64 size = softmax_scratch(X.rows, k);
        rows.sum(HQ, other, size, [&](i64 lo, i64 hi, double* out, int part) {
            X.softmax_hess_vec(lo, hi, y, p, stride, Q, out, work + part * size);
        });
        for (i64 j = 0; j < d * K; ++j) HQ[j] += job.lam * Q[j];
        for (i64 c = 0; c < K && !job.intercept; ++c) HQ[d * K + c] = 0.0;
    }
    bool enough(const double* r, double decrement, double rho) const {
        if (rho > job.rough) return false;
        if (rho <= job.fine || !(decrement <= job.near)) return true;
        double left = 0;  // squared residual after the intercepts have been eliminated
        for (i64 j = 0; j < d; ++j)
            for (i64 c = 0; c < k; ++c) {
                const double v = r[j * K + c] - job.mu[j] * r[d * K + c];
                left += v * v;
            }
        const double share = decrement / job.value, slack = 0.7 * job.tol - share * share;
        const double most = slack > 0.2 * job.tol ? slack : 0.2 * job.tol;
        return left <= 2.0 * job.lam * job.value * (job.to_the_end ? 0.0 : most);
    }

    // Continue from D and its residual Rs; `first` is the initial rho (0 before the first call). Returns the number of
    // products; `done` tells whether more are unnecessary.
    int run(const double* p, i64 stride, const double* g, double* D, double* Rs, double* first, bool* done) {
        precondition(Rs);
        double rho = dot_n(Rs, Y, size);
        if (*first == 0.0) *first = rho;
        for (i64 j = 0; j < size; ++j) Q[j] = Y[j];
        *done = true;
        int products = 0;
        while (rho > 1e-28 * *first && products < job.most) {
            product(p, stride);
            ++products;
            const double curve = dot_n(Q, HQ, size);
            if (!(curve > 0.0)) return products;
            const double step = rho / curve;
            for (i64 j = 0; j < size; ++j) {
                D[j] += step * Q[j];
                Rs[j] -= step * HQ[j];
            }
            zero_sum(Rs);
            precondition(Rs);
            const double next = dot_n(Rs, Y, size);
            if (enough(Rs, -dot_n(g, D, size), next / *first)) return products;
            for (i64 j = 0; j < size; ++j) Q[j] = Y[j] + next / rho * Q[j];
            rho = next;
        }
        *done = !(rho > 1e-28 * *first);
        return products;
    }
};

inline int softmax_steps(const AnyRows& X, const Classes& y, const StepJob& job, const double* p, i64 stride,
                         const double* g, double* D, double* residual, double* first, bool* done, Arena* arena) {
    SoftmaxSteps steps(X, y, job, arena);
    return arena->counts() ? 0 : steps.run(p, stride, g, D, residual, first, done);
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
