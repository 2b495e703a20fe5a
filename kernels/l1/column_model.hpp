// The quadratic model of a prox-Newton step, minimised column by column.
//
//   min over x  (x - w)'g + (x - w)'H(x - w)/2 + l1 |x|_1,   H = X_c' diag(h) X_c + l2,   X_c centred by the intercept
//
// The rows of the template argument R are the columns of X (CSC is CSR of the transpose). Coordinate descent updates
// the slopes q = s sign l' + h x.(step): one update costs the entries of one column. The intercept is eliminated: after
// every update of a coordinate it is at the minimum of the model, at the cost of one multiplication. Once descent has
// found the support, conjugate gradients on it complete the solution; if they would change a sign, the step ends at the
// minimum along the line. Once they have cost about as much as a Cholesky factor of the Hessian on the support, the
// factor is computed and used as their preconditioner.
//
// References: Yuan, Ho and Lin, An improved GLMNET, 2012; Lee, Battle, Raina and Ng, feature-sign search, 2007.
#pragma once
#include <cstdlib>

#include "core/arena.hpp"
#include "core/block_cholesky.hpp"
#include "core/interrupt.hpp"
#include "dual/coordinate_ascent.hpp"
#include "l1/line_minimum.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

template <class T, class F>
inline void each_entry(const DenseRows<T>& X, i64 j, F f) {
    const T* x = X.row(j);
    for (i64 i = 0; i < X.d; ++i) f(i, (double)x[i]);
}
template <class T, class F>
inline void each_entry(const CsrRows<T>& X, i64 j, F f) {
    for (i64 p = X.start[j]; p < X.start[j + 1]; ++p) f((i64)X.index[p], (double)X.x[p]);
}

template <class T>
inline i64 entries_of(const DenseRows<T>& X, i64) {
    return X.d;
}
template <class T>
inline i64 entries_of(const CsrRows<T>& X, i64 j) {
    return X.start[j + 1] - X.start[j];
}

constexpr int kModelRounds = 60;                 // rounds of descent and conjugate gradients for one model
constexpr int kSupportSweeps = 5;                // sweeps of descent over the support before conjugate gradients
constexpr int kGradients = 150;                  // conjugate gradient steps in a round
constexpr int kFarRounds = 3;                    // rounds of descent alone, far from the optimum
constexpr i64 kFactor = 2000;                    // largest support that is factored
constexpr double kBudget = 3e8;                  // entries to visit, after which the call returns at the next step
constexpr i64 kFewColumns = 16, kFewRows = 256;  // visited between two polls

template <class R>
struct ColumnModel {
    const R& X;
    ColumnJob job;
    i64 n, k;
    const double* w;                                         // where the model is expanded
    double *q, *h, *y;                                       // per row
    double *x, *g, *hx, *curve, *r, *p, *sp, *move, *start;  // per feature
    i64 *on, *order, *place;                                 // place: index of a feature in the factor, or -1
    Cholesky chol{0, nullptr, nullptr, 0.0};
    double *memory = nullptr, *rhs = nullptr, *solved = nullptr;  // of the factor
    double spent = 0;                                             // work of conjugate gradients since it was computed
    double mass = 0, slope_b = 0, beta = 0;
    double work = 0;  // entries visited
    int sweeps = 0, solves = 0, gradients = 0;

    ColumnModel(const R& columns, ColumnJob j, const double* weights, Arena* arena)
        : X(columns), job(j), n(columns.d), k(j.count), w(weights) {
        const auto take = [arena](i64 count) { return arena->take(count + 8); };
        q = take(n), h = take(n), y = take(n);
        x = take(k), g = take(k), hx = take(k), curve = take(k);
        r = take(k), p = take(k), sp = take(k), move = take(k), start = take(k);
        on = arena->take_ids(k), order = arena->take_ids(k), place = arena->take_ids(k);
    }
    ~ColumnModel() { delete[] memory; }
    ColumnModel(const ColumnModel&) = delete;
    ColumnModel& operator=(const ColumnModel&) = delete;

    // Compute the gradient and diagonal of the model at w; return the largest violation of the optimality conditions.
    double pose() {
        mass = slope_b = 0.0;
        if (job.intercept)
            for (i64 i = 0; i < n; ++i) mass += h[i], slope_b += q[i];
        double most = 0;
        for (i64 a = 0; a < k; ++a) {
            if (a % kFewColumns == 0) poll();
            double first = 0, mixed = 0, second = 0;
            each_entry(X, job.list[a], [&](i64 i, double v) {
                const double hv = h[i] * v;
                first += v * q[i];
                mixed += hv;
                second += hv * v;
            });
            g[a] = first + job.l2 * w[a];
            hx[a] = mass > 0.0 ? mixed : 0.0;
            const double centred = second - (mass > 0.0 ? mixed * mixed / mass : 0.0);
            curve[a] = (centred > 1e-12 * second ? centred : 1e-12 * second) + job.l2;
            most = larger(most, breach(w[a], g[a]));
        }
        beta = mass > 0.0 ? -slope_b / mass : 0.0;
        for (i64 a = 0; a < k; ++a) x[a] = w[a];
        return most;
    }
    // Return whether a feature violates its condition although all its rows are on linear pieces of the loss: the model
    // then has no minimum along it.
    bool flat() const {
        for (i64 a = 0; a < k; ++a)
            if (!(curve[a] > 0.0) && breach(w[a], g[a]) > 0.0) return true;
        return false;
    }
    double breach(double at, double slope) const { return breach_of(at, slope, job.l1); }
    double slope_at(i64 a) const { return X.dot_row(job.list[a], q) + beta * hx[a] + job.l2 * x[a]; }

    // Minimise over one coordinate and the intercept; return the previous violation of its optimality condition.
    double settle(i64 a) {
        work += (double)entries_of(X, job.list[a]);
        const double slope = slope_at(a), found = breach(x[a], slope);
        if (found == 0.0 || (!(curve[a] > 0.0) && __builtin_fabs(slope) > job.l1)) return 0.0;
        // without curvature, |slope| <= l1 makes 0 optimal
        const double at = curve[a] * x[a] - slope, over = __builtin_fabs(at) - job.l1;
        const double to = over > 0.0 && curve[a] > 0.0 ? (at > 0.0 ? over : -over) / curve[a] : 0.0;
        const double step = to - x[a];
        if (step == 0.0) return 0.0;
        x[a] = to;
        double* slopes = q;
        const double* curvatures = h;
        each_entry(X, job.list[a], [=](i64 i, double v) { slopes[i] += step * curvatures[i] * v; });
        if (mass > 0.0) beta -= step * hx[a] / mass;
        return found;
    }

    void minimise(double eta, bool far) {
        const double enough = eta * job.l1;
        const int rounds = far ? kFarRounds : kModelRounds;
        for (int round = 0; round < rounds && (round == 0 || work < kBudget); ++round) {
            double most = 0;
            for (i64 a = 0; a < k; ++a) {
                if (a + kAhead < k) fetch_row(X, job.list[a + kAhead]);
                if (a % kFewColumns == 0) poll();
                most = larger(most, settle(a));
            }
            ++sweeps;
            if (most <= enough) return;
            bool settled = false;
            const int most_sweeps = chol.n > 0 ? 1 : kSupportSweeps;  // with a factor, conjugate gradients are faster
            for (int sweep = 0; sweep < most_sweeps && !settled; ++sweep) {
                double inner = 0;
                poll();
                for (i64 a = 0; a < k; ++a)
                    if (x[a] != 0.0) inner = larger(inner, settle(a));
                settled = inner <= 0.3 * enough;
            }
            if (!settled && !far) conjugate_gradients(0.2 * enough);
        }
    }

    // out = sum of v_c times column c, over the listed features
    void combine(const i64* list, i64 count, const double* v, double* out) {
        for (i64 i = 0; i < n; ++i) out[i] = 0.0;
        for (i64 c = 0; c < count; ++c) {
            if (c + kAhead < count) fetch_row(X, job.list[list[c + kAhead]]);
            if (v[c] != 0.0) X.axpy(job.list[list[c]], v[c], out);
        }
    }

    // out = M^-1 r on the support: by the last factor for the features in it, by the diagonal for the others.
    void precondition(i64 m, double* out) {
        for (i64 c = 0; c < m; ++c) out[c] = r[c] / curve[on[c]];
        if (chol.n == 0) return;
        for (i64 f = 0; f < chol.n; ++f) rhs[f] = 0.0;
        for (i64 c = 0; c < m; ++c)
            if (place[on[c]] >= 0) rhs[place[on[c]]] = r[c];
        chol.solve(rhs, solved);
        for (i64 c = 0; c < m; ++c)
            if (place[on[c]] >= 0) out[c] = solved[place[on[c]]];
    }
    // Assemble the Hessian of the model on the support in the upper triangle of S. Sparse columns are transposed to
    // rows first, which are short.
    void assemble(i64 m, double* S) {
        for (i64 c = 0; c < m * m; ++c) S[c] = 0.0;
        if constexpr (R::dense) {
            for (i64 c = 0; c < m; ++c) {
                poll();
                each_entry(X, job.list[on[c]], [&](i64 i, double v) { y[i] = h[i] * v; });
                for (i64 e = c; e < m; ++e) S[c * m + e] = X.dot_row(job.list[on[e]], y);
            }
        } else {
            i64 entries = 0;
            for (i64 c = 0; c < m; ++c) entries += entries_of(X, job.list[on[c]]);
            const Allocated<i64> first(n + 2 + entries);
            const Allocated<double> value(entries + 1);
            if (first.at && value.at) by_rows(m, first.at, first.at + n + 2, value.at, S);
        }
        for (i64 c = 0; c < m; ++c) {
            const double share = mass > 0.0 ? hx[on[c]] / mass : 0.0;
            for (i64 e = c; e < m; ++e) S[c * m + e] -= share * hx[on[e]];
            S[c * m + c] = curve[on[c]] * (1.0 + 1e-10);
        }
    }
    void by_rows(i64 m, i64* first, i64* index, double* value, double* S) {
        for (i64 i = 0; i < n + 2; ++i) first[i] = 0;
        for (i64 c = 0; c < m; ++c) each_entry(X, job.list[on[c]], [&](i64 i, double) { ++first[i + 2]; });
        for (i64 i = 0; i < n; ++i) first[i + 2] += first[i + 1];
        for (i64 c = 0; c < m; ++c)
            each_entry(X, job.list[on[c]], [&](i64 i, double v) {
                const i64 at = first[i + 1]++;
                index[at] = c;
                value[at] = v;
            });
        for (i64 i = 0; i < n; ++i) {
            if (i % kFewRows == 0) poll();
            for (i64 a = first[i]; a < first[i + 1]; ++a) {
                double* row = S + index[a] * m;
                const double hv = h[i] * value[a];
                for (i64 b = a + 1; b < first[i + 1]; ++b) row[index[b]] += hv * value[b];
            }
        }
    }
    // Cost of a factor, in entries visited.
    double price(i64 m, double entries) const {
        const double pairs = R::dense ? 0.5 * (double)m * entries : entries * entries / (double)n;
        return pairs + (double)m * (double)m * (1.0 + (double)m / 50.0);
    }
    void factor(i64 m) {
        delete[] memory;
        memory = new (std::nothrow) double[static_cast<std::size_t>(m * m + 3 * m + block_pack(m))];
        spent = 0.0;
        chol.n = 0;
        if (!memory) return;
        chol.U = memory;
        chol.scale = memory + m * m, rhs = chol.scale + m, solved = rhs + m;
        for (i64 a = 0; a < k; ++a) place[a] = -1;
        for (i64 c = 0; c < m; ++c) place[on[c]] = c;
        assemble(m, memory);
        chol.n = m;
        factor_in_blocks(chol, solved + m);
    }

    // Minimise the model over the coefficients with the current support and signs, as far as the signs hold.
    void conjugate_gradients(double enough) {
        i64 m = 0;
        for (i64 a = 0; a < k; ++a)
            if (x[a] != 0.0) on[m++] = a;
        if (m == 0) return;
        double entries = (double)n, norm = 0;
        for (i64 c = 0; c < m; ++c) {
            const i64 a = on[c];
            r[c] = start[c] = -(slope_at(a) + (x[a] > 0.0 ? job.l1 : -job.l1));
            move[c] = 0.0;
            entries += (double)entries_of(X, job.list[a]);
        }
        bool fresh = true;  // restart with the current preconditioner
        for (int step = 0; step < kGradients && work < 1.5 * kBudget; ++step) {
            double most = 0;
            poll();
            for (i64 c = 0; c < m; ++c) most = larger(most, __builtin_fabs(r[c]));
            if (most <= enough) break;
            if (m <= kFactor && spent > 0.5 * price(m, entries)) {
                factor(m);
                fresh = true;
            }
            if (fresh) {
                precondition(m, p);
                norm = dot_n(r, p, m);
                fresh = false;
            }
            combine(on, m, p, y);
            double sum = 0;
            for (i64 i = 0; i < n; ++i) sum += h[i] * y[i];
            const double mean = mass > 0.0 ? sum / mass : 0.0;
            for (i64 i = 0; i < n; ++i) y[i] = h[i] * (y[i] - mean);
            double curved = 0, length = 0;
            for (i64 c = 0; c < m; ++c) {
                const i64 a = on[c];
                if (c + kAhead < m) fetch_row(X, job.list[on[c + kAhead]]);
                sp[c] = X.dot_row(job.list[a], y) + job.l2 * p[c];
                curved += p[c] * sp[c];
                length += p[c] * p[c] * curve[a];
            }
            spent += 2.0 * entries;
            work += 2.0 * entries;
            ++gradients;
            if (!(curved > 1e-14 * length)) {  // no curvature: move as far as the kinks allow
                if (step == 0)
                    for (i64 c = 0; c < m; ++c) move[c] = p[c];
                break;
            }
            const double alpha = norm / curved;
            for (i64 c = 0; c < m; ++c) {
                move[c] += alpha * p[c];
                r[c] -= alpha * sp[c];
            }
            precondition(m, sp);
            const double now = dot_n(r, sp, m), ratio = now / norm;
            for (i64 c = 0; c < m; ++c) p[c] = sp[c] + ratio * p[c];
            norm = now;
            if (!(now > 0.0)) break;
        }
        ++solves;
        along_kinks(m);
    }

    // Exact line search of the model along `move`, the step found by conjugate gradients.
    void along_kinks(i64 m) {
        double slope = 0, curved = 0;
        Kinks kinks{p, order};
        for (i64 c = 0; c < m; ++c) {
            slope -= start[c] * move[c];
            curved += move[c] * (start[c] - r[c]);
            if (move[c] * x[on[c]] < 0.0) kinks.add(-x[on[c]] / move[c], c);
        }
        if (!(slope < 0.0)) return;
        const Landing end = minimum_along(kinks, move, slope, larger(curved, 0.0), job.l1);
        for (i64 c = 0; c < m; ++c) {
            const i64 a = on[c];
            const double to = c == end.who ? 0.0 : x[a] + end.length * move[c];
            move[c] = to - x[a];
            x[a] = to;
        }
        combine(on, m, move, y);
        double sum = 0;
        for (i64 i = 0; i < n; ++i) {
            const double change = h[i] * y[i];
            q[i] += change;
            sum += change;
        }
        if (mass > 0.0) beta -= sum / mass;
    }
};

}  // namespace
}  // namespace linsep::LINSEP_ARCH
