// A complete multinomial fit in one call, for problems so small that Python would take longer between two passes than
// the passes.
//
// Newton's method on  P(W) = lam/2 |W_w|^2 + sum s (logsumexp(z) - z_y),  lam > 0, with the full Hessian of all
// classes: gradient sweep, k (k + 1)/2 Gram matrices in the centred coordinates (x - mu, 1), Cholesky factor with one
// step of refinement, unit step or backtracking by halves. It ends at working precision, with a closing pass.
// src/linsep/solvers/multiclass/softmax.py is the same method for problems of any size.
#pragma once
#include "newton/fit.hpp"
#include "softmax/closing.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

struct SoftmaxNewton {
    const AnyRows& X;
    Classes y;
    NewtonJob job;
    i64 n, d, order, k, K, size;
    double *W, *trial, *D, *sums, *rhs, *x, *residual, *mu, *p, *pairs, *H, *work, *pack;
    Cholesky chol;
    double value = 0;
    NewtonReport report{};

    SoftmaxNewton(const AnyRows& rows, const Classes& classes, NewtonJob j, double* start, Arena* arena)
        : X(rows),
          y(classes),
          job(j),
          n(rows.n),
          d(rows.d),
          order(rows.d + 1),
          k(classes.k),
          K(padded_classes(classes.k)),
          size(order * k),
          W(start) {
        const auto take = [arena](auto... factors) { return arena->take(factors...); };
        trial = take(order * K);
        D = take(order * K);
        sums = take(3 + order * K);
        rhs = take(size);
        x = take(size);
        residual = take(size);
        chol.scale = take(size);
        chol.n = size;
        mu = take(order);
        p = take(k, n);
        pairs = take(k * (k + 1) / 2, order, order);
        H = take(size, size);
        chol.U = take(size, size);
        work = take(softmax_scratch(X.rows, k));
        pack = take(gram_rows<double>(d) + gram_scratch(X.rows));
    }

    void centre() {
        for (i64 j = 0; j < d; ++j) mu[j] = 0.0;
        if (!job.intercept || !X.dense) return;
        for (i64 r = 0; r < n; ++r) X.axpy(r, 1.0 / (double)n, mu);
    }

    // Return P; sums gets the gradient of the losses, p the probabilities.
    double evaluate(const double* at) {
        poll();
        for (i64 j = 0; j < 3 + order * K; ++j) sums[j] = 0.0;
        X.softmax_sweep(0, n, y, at, false, sums, p, n, (double*)nullptr, work);
        ++report.sweeps;
        return sums[0] + 0.5 * job.lam * dot_n(at, at, d * K);
    }

    // Assemble H, ordered by class; an additional term keeps the sum of a step over the classes at zero.
    void assemble() {
        for (i64 j = 0; j < k * (k + 1) / 2 * order * order; ++j) pairs[j] = 0.0;
        X.softmax_hessian(0, n, y, p, n, mu, pairs, pack);
        ++report.grams;
        const double* G = pairs;
        for (i64 a = 0; a < k; ++a)
            for (i64 b = a; b < k; ++b, G += order * order)
                for (i64 i = 0; i < order; ++i)
                    for (i64 j = i; j < order; ++j) {
                        double v = G[i * order + j];
                        if (!X.dense && i != j) v += G[j * order + i];
                        if (a != b) v = -v;
                        if (!job.intercept && j == d) v = 0.0;
                        if (a == b && i == j && i < d) v += job.lam;
                        put(a * order + i, b * order + j, v);
                        put(a * order + j, b * order + i, v);
                    }
        for (i64 j = 0; j < order; ++j) {
            double trace = 0;
            for (i64 a = 0; a < k; ++a) trace += H[(a * order + j) * size + a * order + j];
            for (i64 a = 0; a < k; ++a)
                for (i64 b = 0; b < k; ++b) H[(a * order + j) * size + b * order + j] += trace / (double)(k * k);
        }
    }
    // Subtract the mean over the classes for each feature j; entry (j, class c) is a[c * by_class + j * by_feature].
    void zero_sum(double* a, i64 by_class, i64 by_feature) const {
        for (i64 j = 0; j < order; ++j) {
            double mean = 0;
            for (i64 c = 0; c < k; ++c) mean += a[c * by_class + j * by_feature] / (double)k;
            for (i64 c = 0; c < k; ++c) a[c * by_class + j * by_feature] -= mean;
        }
    }
    void put(i64 i, i64 j, double v) { H[i * size + j] = H[j * size + i] = v; }

    // D = -H^-1 gradient; returns the squared Newton decrement.
    double direction() {
        assemble();
        const double* g = sums + 3;
        for (i64 c = 0; c < k; ++c) {
            const double gb = job.intercept ? g[d * K + c] : 0.0;
            for (i64 j = 0; j < d; ++j) rhs[c * order + j] = -(g[j * K + c] + job.lam * W[j * K + c] - mu[j] * gb);
            rhs[c * order + d] = -gb;
        }
        zero_sum(rhs, order, 1);
        chol.factor(H, false);
        chol.solve(rhs, x);
        for (i64 i = 0; i < size; ++i) residual[i] = chol.scale[i] == 0.0 ? 0.0 : rhs[i] - dot_n(H + i * size, x, size);
        double* more = trial;  // unused here: size <= order * K
        chol.solve(residual, more);
        double decrement = 0;
        for (i64 i = 0; i < size; ++i) {
            x[i] += more[i];
            decrement += rhs[i] * x[i];
        }
        for (i64 j = 0; j < order * K; ++j) D[j] = 0.0;
        for (i64 c = 0; c < k; ++c) {
            for (i64 j = 0; j < d; ++j) D[j * K + c] = x[c * order + j];
            D[d * K + c] = job.intercept ? x[c * order + d] - dot_n(mu, x + c * order, d) : 0.0;
        }
        zero_sum(D, 1, K);
        return decrement;
    }

    // status: 0 step limit, 1 working precision, 2 no descent, 4 not finite
    NewtonReport run(double* base, double* step, double* out) {
        centre();
        value = evaluate(W);
        for (report.steps = 0; report.steps < job.max_steps && report.status == 0; ++report.steps) {
            const double decrement = direction();
            if (!(value - value == 0.0) || !(decrement - decrement == 0.0)) {
                report.status = 4;
                break;
            }
            const bool tiny = __builtin_fabs(decrement) <= 1e-13 * value;
            double length = 1.0, next = value;
            for (int halves = 0; halves < 40; ++halves, length *= 0.5) {
                for (i64 j = 0; j < order * K; ++j) trial[j] = W[j] + length * D[j];
                next = evaluate(trial);
                if (tiny || next <= value - 1e-4 * length * decrement) break;
            }
            if (!(tiny ? next <= value * (1.0 + 1e-12) : next < value)) {
                report.status = 2;
                break;
            }
            if (tiny) report.status = 1;
            for (i64 j = 0; j < order * K; ++j) {
                base[j] = W[j];
                step[j] = D[j];
                W[j] = trial[j];
            }
            value = next;
        }
        report.primal = value;
        if (report.status == 1) close(base, step, out);
        return report;
    }
    void close(const double* base, const double* step, double* out) {
        for (i64 j = 0; j < order; ++j) {
            x[j] = 0.0;
            for (i64 c = 0; c < k; ++c) x[j] = __builtin_fmax(x[j], __builtin_fabs(W[j * K + c]));
        }
        X.softmax_closing(0, n, y, base, step, W, x, nullptr, out, work);
        ++report.sweeps;
    }
};

inline NewtonReport softmax_newton(const AnyRows& X, const Classes& y, NewtonJob job, double* W, double* base,
                                   double* step, double* closing, Arena* arena) {
    SoftmaxNewton fit(X, y, job, W, arena);
    return arena->counts() ? NewtonReport{} : fit.run(base, step, closing);
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
