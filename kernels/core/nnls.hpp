// Non-negative least squares: min |sum_i x_i a_i - f| over x >= 0, where a_i are the rows of A (m, p), by Lawson and
// Hanson's active set method (Solving Least Squares Problems, 1974, chapter 23). The active rows are stored as a thin
// QR factorisation a_P = Q R, extended by Gram-Schmidt with reorthogonalisation and downdated by plane rotations, so
// that the condition number is not squared by forming A A'.
#pragma once
#include <cmath>

#include "core/arena.hpp"
#include "core/interrupt.hpp"
#include "core/rows.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

inline double nnls_dot(i64 n, const double* a, const double* b) {
    vd s0{}, s1{};
    i64 j = 0;
    for (; j + 2 * VL <= n; j += 2 * VL) {
        s0 += load(a + j) * load(b + j);
        s1 += load(a + j + VL) * load(b + j + VL);
    }
    double sum = total(s0 + s1);
    for (; j < n; ++j) sum += a[j] * b[j];
    return sum;
}
inline void nnls_axpy(i64 n, double t, const double* a, double* out) {
    for (i64 j = 0; j < n; ++j) out[j] += t * a[j];
}

struct Nnls {
    i64 m, p, cap;
    const double *A, *f;
    double *x, *r;                         // solution and residual f - sum x_i a_i
    double *Q, *R, *c, *z, *norm, *slope;  // Q: cap rows of p; R: cap columns of cap, upper triangular; c = Q'f
    i64* used;                             // active rows, in the order of the factorisation
    char* blocked;
    i64 k = 0;

    // A row is dependent if its distance from the span of the active rows, relative to its norm, is at most kDependent.
    static constexpr double kDependent = 1e-12;
    // A smaller cosine between a row and the residual counts as 0.
    static constexpr double kFlat = 1e-14;

    Nnls(i64 m_, i64 p_, const double* A_, const double* f_, double* x_, double* r_, Arena* arena)
        : m(m_), p(p_), cap(m_ < p_ ? m_ : p_), A(A_), f(f_), x(x_), r(r_) {
        Q = arena->take(cap, p), R = arena->take(cap, cap), c = arena->take(cap), z = arena->take(cap);
        norm = arena->take(m), slope = arena->take(m);
        used = arena->take_ids(cap);
        blocked = reinterpret_cast<char*>(arena->take((m + 7) / 8));
    }

    void residual() {
        for (i64 j = 0; j < p; ++j) r[j] = f[j];
        for (int round = 0; round < 2; ++round)  // reorthogonalise: remove components left by rounding
            for (i64 j = 0; j < k; ++j) nnls_axpy(p, -nnls_dot(p, Q + j * p, r), Q + j * p, r);
    }
    // Append row i to the factorisation, unless it lies in the span of the active rows.
    bool add(i64 i) {
        if (k == cap) return false;
        double* q = Q + k * p;
        double* column = R + k * cap;
        for (i64 j = 0; j < p; ++j) q[j] = A[i * p + j];
        for (i64 j = 0; j < k; ++j) column[j] = 0.0;
        for (int round = 0; round < 2; ++round)
            for (i64 j = 0; j < k; ++j) {
                const double t = nnls_dot(p, Q + j * p, q);
                column[j] += t;
                nnls_axpy(p, -t, Q + j * p, q);
            }
        const double left = std::sqrt(nnls_dot(p, q, q));
        if (!(left > kDependent * norm[i])) return false;
        for (i64 j = 0; j < p; ++j) q[j] /= left;
        column[k] = left;
        c[k] = nnls_dot(p, q, f);
        used[k++] = i;
        return true;
    }
    // Remove the row at position t: shift the later columns of R and restore its triangular form by plane rotations.
    void remove(i64 t) {
        for (i64 j = t; j + 1 < k; ++j) {
            double *left = R + j * cap, *right = R + (j + 1) * cap;
            for (i64 i = 0; i <= j + 1; ++i) left[i] = right[i];
            used[j] = used[j + 1];
        }
        --k;
        for (i64 j = t; j < k; ++j) {
            const double a = R[j * cap + j], b = R[j * cap + j + 1], h = std::hypot(a, b);
            if (h == 0.0) continue;
            const double co = a / h, si = b / h;
            for (i64 i = j; i < k; ++i) rotate(co, si, R[i * cap + j], R[i * cap + j + 1]);
            for (i64 i = 0; i < p; ++i) rotate(co, si, Q[j * p + i], Q[(j + 1) * p + i]);
            rotate(co, si, c[j], c[j + 1]);
        }
    }
    static void rotate(double co, double si, double& a, double& b) {
        const double t = co * a + si * b;
        b = co * b - si * a;
        a = t;
    }
    void solve() {  // R z = c
        for (i64 j = k; j-- > 0;) {
            double s = c[j];
            for (i64 i = j + 1; i < k; ++i) s -= R[i * cap + j] * z[i];
            z[j] = s / R[j * cap + j];
        }
    }
    // Move x to the least squares solution z; rows whose weight falls to 0 on the way become inactive.
    void settle() {
        for (solve(); k > 0; solve()) {
            double step = 2.0;
            for (i64 j = 0; j < k; ++j)
                if (z[j] <= 0.0) {
                    const double now = x[used[j]], t = now / (now - z[j]);
                    if (!(t >= step)) step = now > 0.0 ? t : 0.0;
                }
            if (step > 1.0) break;
            bool gone = false;
            for (i64 j = k; j-- > 0;) {
                double& now = x[used[j]];
                const bool leaves = z[j] <= 0.0 && (now <= 0.0 || now / (now - z[j]) <= step);
                now += step * (z[j] - now);
                if (leaves) {
                    poll();
                    now = 0.0;
                    remove(j);
                    gone = true;
                }
            }
            if (!gone) break;  // NaN
        }
        for (i64 j = 0; j < k; ++j) x[used[j]] = z[j];
    }
    NewtonReport run(double tol, int max_steps) {
        const double target = std::sqrt(nnls_dot(p, f, f));
        for (i64 i = 0; i < m; ++i) {
            poll();
            norm[i] = std::sqrt(nnls_dot(p, A + i * p, A + i * p));
            blocked[i] = 0;
            if (x[i] > 0.0 && !add(i)) x[i] = 0.0;
        }
        settle();
        int steps = 0;
        for (;; ++steps) {
            poll();
            residual();
            const double size = std::sqrt(nnls_dot(p, r, r));
            if (size <= tol * target) return {steps, 0, 0, 1, size};
            if (steps == max_steps) return {steps, 0, 0, 2, size};
            for (i64 i = 0; i < m; ++i) slope[i] = nnls_dot(p, A + i * p, r);
            if (!enter(size)) return {steps, 0, 0, 0, size};
            settle();
        }
    }
    // Activate the row with the smallest angle to the residual whose weight would be positive.
    bool enter(double size) {
        for (i64 i = 0; i < m; ++i) blocked[i] = 0;
        for (i64 j = 0; j < k; ++j) blocked[used[j]] = 1;
        for (;;) {
            i64 best = -1;
            double sharpest = kFlat * size;
            for (i64 i = 0; i < m; ++i)
                if (!blocked[i] && slope[i] > sharpest * norm[i]) best = i, sharpest = slope[i] / norm[i];
            if (best < 0) return false;
            blocked[best] = 1;
            if (!add(best)) continue;
            if (c[k - 1] / R[(k - 1) * cap + k - 1] > 0.0) return true;
            --k;
        }
    }
};

inline NewtonReport nnls(i64 m, i64 p, const double* A, const double* f, double tol, int max_steps, double* x,
                         double* r, Arena* arena) {
    Nnls fit(m, p, A, f, x, r, arena);
    return arena->counts() ? NewtonReport{} : fit.run(tol, max_steps);
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
