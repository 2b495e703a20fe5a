// Cholesky factor of a small symmetric matrix, and dot products of short vectors.
//
// U'U = S A S + tiny with S = diag(A)^(-1/2), U stored by rows. Right-looking, two rows at a time, so that every inner
// loop runs along a row without dependencies. Columns with a zero diagonal (and, with `drop`, linearly dependent ones)
// get scale 0 and are decoupled from the others: their entries of the solution are 0.
#pragma once
#include "core/interrupt.hpp"
#include "core/rows.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

inline double dot_n(const double* a, const double* b, i64 n) {
    vd s{};
    i64 i = 0;
    for (; i + VL <= n; i += VL) s += load(a + i) * load(b + i);
    double r = total(s);
    for (; i < n; ++i) r += a[i] * b[i];
    return r;
}
// y -= a x
inline void subtract_n(double a, const double* x, double* y, i64 n) {
    i64 i = 0;
    for (; i + VL <= n; i += VL) store(y + i, load(y + i) - a * load(x + i));
    for (; i < n; ++i) y[i] -= a * x[i];
}

struct Cholesky {
    i64 n;
    double *U, *scale;
    double least;  // smallest pivot, as a share of the diagonal

    void factor(const double* A, bool drop) {
        for (i64 i = 0; i < n; ++i) {
            const double a = A[i * n + i];
            scale[i] = a > 0.0 ? 1.0 / __builtin_sqrt(a) : 0.0;
        }
        for (i64 i = 0; i < n; ++i) {
            for (i64 j = i; j < n; ++j) U[i * n + j] = A[i * n + j] * scale[i] * scale[j];
            if (scale[i] > 0.0) U[i * n + i] = 1.0;  // exactly, without rounding error
        }
        least = 1.0;
        i64 k = 0;
        for (; k + 1 < n; k += 2) {
            if (k % 64 == 62) poll();
            pivot(k, drop);
            double *a = U + k * n, *b = a + n;
            subtract_n(a[k + 1], a + k + 1, b + k + 1, n - k - 1);
            pivot(k + 1, drop);
            for (i64 i = k + 2; i < n; ++i) {
                const double p = a[i], q = b[i];
                double* row = U + i * n;
                i64 j = i;
                for (; j + VL <= n; j += VL) store(row + j, load(row + j) - p * load(a + j) - q * load(b + j));
                for (; j < n; ++j) row[j] -= p * a[j] + q * b[j];
            }
        }
        if (k < n) pivot(k, drop);
    }
    void solve(const double* b, double* x) const {
        for (i64 i = 0; i < n; ++i) x[i] = b[i] * scale[i];
        for (i64 i = 0; i < n; ++i) {
            x[i] /= U[i * n + i];
            subtract_n(x[i], U + i * n + i + 1, x + i + 1, n - i - 1);
        }
        for (i64 i = n; i-- > 0;) x[i] = (x[i] - dot_n(U + i * n + i + 1, x + i + 1, n - i - 1)) / U[i * n + i];
        for (i64 i = 0; i < n; ++i) x[i] *= scale[i];
    }
    // x = A^-1 b with one step of iterative refinement; res is scratch of n numbers.
    void solve_refined(const double* A, const double* b, double* x, double* res) const {
        solve(b, x);
        for (i64 i = 0; i < n; ++i) res[i] = scale[i] == 0.0 ? 0.0 : b[i] - dot_n(A + i * n, x, n);
        solve(res, res);
        for (i64 i = 0; i < n; ++i) x[i] += res[i];
    }

  private:
    // Divide row k by the square root of its pivot, which completes row k of U.
    void pivot(i64 k, bool drop) {
        double* row = U + k * n;
        double p = row[k];
        if (scale[k] == 0.0 || (drop && p < 1e-13)) {
            scale[k] = 0.0;
            for (i64 i = 0; i < k; ++i) U[i * n + k] = 0.0;
            for (i64 j = k + 1; j < n; ++j) row[j] = 0.0;
            row[k] = 1.0;
            return;
        }
        if (p < least) least = p;
        p = __builtin_sqrt(p > 1e-15 ? p : 1e-15);
        row[k] = p;
        for (i64 j = k + 1; j < n; ++j) row[j] /= p;
    }
};

}  // namespace
}  // namespace linsep::LINSEP_ARCH
