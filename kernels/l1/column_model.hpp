// The quadratic model of a prox-Newton step, minimised column by column.
//
//   min over x  (x - w)'g + (x - w)'H(x - w)/2 + sum_g weight_g |x_g|,   H = X_c' diag(h) X_c + ridge,
//
// where X_c is centred by the intercept and g numbers groups of features; groups of one give the L1 penalty.
// The rows of the template argument R are the columns of X (CSC is CSR of the transpose). Coordinate descent updates
// the slopes q = s sign l' + h x.(step): one update costs the entries of one column. The intercept is eliminated: after
// every update of a coordinate it is at the minimum of the model, at the cost of one multiplication. Once descent has
// found the support, conjugate gradients on it complete the solution; if they would change a sign, the step ends at the
// minimum along the line. Once they have cost about as much as a Cholesky factor of the Hessian on the support, the
// factor is computed and used as their preconditioner.
//
// A group of several features is updated as a whole, at the minimum of a separable majorant of its model, whose
// minimiser is the root of an equation in |x_g|. On the support the norms of such groups are smooth, with the curvature
// weight (I - u u')/|x_g|, u = x_g/|x_g|: conjugate gradients then compute a Newton step, followed by a line search.
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
constexpr double kPatience = 1.5e9;              // that number if the loss is quadratic
constexpr i64 kFewColumns = 16, kFewRows = 256;  // visited between two polls
constexpr int kPowers = 6;                       // steps of the power method for the majorant of a group
constexpr int kSecular = 30;                     // Newton steps for the norm of a group
constexpr int kBisections = 60;                  // of a line search with norms

template <class R>
struct ColumnModel {
    const R& X;
    ColumnJob job;
    i64 n, k;
    const double* w;                                         // where the model is expanded
    double *q, *h, *y;                                       // per row
    double *x, *g, *hx, *curve, *r, *p, *sp, *move, *start;  // per feature
    double *slope, *bound, *top;                             // per feature: of groups of several features
    double *unit, *bend, *diagonal;   // of the support: x_g/|x_g|, weight/|x_g|, diagonal of the system
    double* spread;                   // per group: the majorant is spread times the diagonal
    i64 *on, *order, *place, *owner;  // place: index of a feature in the factor, or -1; owner: its group
    bool posed = false;
    bool patient = false;  // solve the model accurately also far from the optimum: the loss is quadratic
    int most_gradients = kGradients;
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
        slope = take(k), bound = take(k), top = take(k);
        unit = take(k), bend = take(k), diagonal = take(k), spread = take(j.groups);
        on = arena->take_ids(k), order = arena->take_ids(k), place = arena->take_ids(k);
        owner = arena->take_ids(k);
        if (arena->counts()) return;
        for (i64 c = 0; c < j.groups; ++c)
            for (i64 a = j.first[c]; a < j.first[c + 1]; ++a) owner[a] = c;
    }
    ~ColumnModel() { delete[] memory; }
    ColumnModel(const ColumnModel&) = delete;
    ColumnModel& operator=(const ColumnModel&) = delete;

    double budget() const { return patient ? kPatience : kBudget; }
    bool singles() const { return job.groups == k; }
    i64 size(i64 c) const { return job.first[c + 1] - job.first[c]; }
    double weight(i64 a) const { return job.weights[owner[a]]; }
    double ridge(i64 a) const { return job.ridges[owner[a]]; }
    double norm(i64 c, const double* v) const {
        const i64 from = job.first[c], to = job.first[c + 1];
        if (to == from + 1) return __builtin_fabs(v[from]);
        double sum = 0;
        for (i64 a = from; a < to; ++a) sum += v[a] * v[a];
        return __builtin_sqrt(sum);
    }
    double penalty(const double* v) const {
        double sum = 0;
        for (i64 c = 0; c < job.groups; ++c) {
            const double length = norm(c, v);
            sum += (job.weights[c] + 0.5 * job.ridges[c] * length) * length;
        }
        return sum;
    }

    // Violation of the optimality condition of a group, relative to its weight.
    double violation(i64 c, const double* at, const double* slopes) const {
        const i64 from = job.first[c], to = job.first[c + 1];
        const double price = job.weights[c];
        if (to == from + 1) return breach_of(at[from], slopes[from], price) / price;
        const double length = norm(c, at);
        if (length == 0.0) return larger(norm(c, slopes) / price - 1.0, 0.0);
        double sum = 0;
        for (i64 a = from; a < to; ++a) {
            const double away = slopes[a] / price + at[a] / length;
            sum += away * away;
        }
        return __builtin_sqrt(sum);
    }

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
            g[a] = first + ridge(a) * w[a];
            hx[a] = mass > 0.0 ? mixed : 0.0;
            const double centred = second - (mass > 0.0 ? mixed * mixed / mass : 0.0);
            curve[a] = (centred > 1e-12 * second ? centred : 1e-12 * second) + ridge(a);
        }
        beta = mass > 0.0 ? -slope_b / mass : 0.0;
        for (i64 a = 0; a < k; ++a) x[a] = w[a];
        for (i64 c = 0; c < job.groups; ++c) most = larger(most, violation(c, w, g));
        if (!singles()) majorise();
        posed = true;
        return most;
    }
    // Estimate the largest eigenvalue of the Hessian of each group, scaled to diagonal 1, by the power method. Descent
    // needs more than half of it.
    void majorise() {
        for (i64 i = 0; i < n; ++i) y[i] = 0.0;
        for (i64 c = 0; c < job.groups; ++c) {
            const i64 from = job.first[c], to = job.first[c + 1];
            spread[c] = 1.0;
            if (to == from + 1) continue;
            if (c % kFewColumns == 0) poll();
            if (!posed)
                for (i64 a = from; a < to; ++a) top[a] = 1.0;
            double length = norm(c, top);
            for (int step = 0; step < (posed ? 2 : kPowers) && length > 0.0; ++step) {
                double sum = 0;
                for (i64 a = from; a < to; ++a) {
                    move[a] = curve[a] > 0.0 ? top[a] / (length * __builtin_sqrt(curve[a])) : 0.0;
                    sum += hx[a] * move[a];
                    X.axpy(job.list[a], move[a], y);
                }
                const double mean = mass > 0.0 ? sum / mass : 0.0;
                for (i64 a = from; a < to; ++a) {
                    double total = 0;
                    each_entry(X, job.list[a], [&](i64 i, double v) { total += h[i] * v * y[i]; });
                    total += job.ridges[c] * move[a] - mean * hx[a];
                    top[a] = curve[a] > 0.0 ? total / __builtin_sqrt(curve[a]) : 0.0;
                }
                for (i64 a = from; a < to; ++a) each_entry(X, job.list[a], [&](i64 i, double) { y[i] = 0.0; });
                length = norm(c, top);
            }
            const double estimate = 1.1 * length;
            spread[c] = estimate > 1.0 ? estimate : 1.0;
        }
    }
    // Return whether a feature violates its condition although all its rows are on linear pieces of the loss: the model
    // then has no minimum along it.
    bool flat() const {
        for (i64 a = 0; a < k; ++a)
            if (!(curve[a] > 0.0) && g[a] != 0.0 && violation(owner[a], w, g) > 0.0) return true;
        return false;
    }
    double slope_at(i64 a) const { return X.dot_row(job.list[a], q) + beta * hx[a] + ridge(a) * x[a]; }

    // Minimise over one group and the intercept; return the previous violation of its optimality condition.
    double settle(i64 c) { return size(c) == 1 ? settle_single(job.first[c]) : settle_group(c); }

    double settle_single(i64 a) {
        work += (double)entries_of(X, job.list[a]);
        const double price = weight(a), at_x = slope_at(a), found = breach_of(x[a], at_x, price);
        if (found == 0.0 || (!(curve[a] > 0.0) && __builtin_fabs(at_x) > price)) return 0.0;
        // without curvature, |slope| <= weight makes 0 optimal
        const double at = curve[a] * x[a] - at_x, over = __builtin_fabs(at) - price;
        const double to = over > 0.0 && curve[a] > 0.0 ? (at > 0.0 ? over : -over) / curve[a] : 0.0;
        if (to == x[a]) return 0.0;
        place_at(a, to);
        return found / price;
    }
    void place_at(i64 a, double to) {
        const double step = to - x[a];
        x[a] = to;
        double* slopes = q;
        const double* curvatures = h;
        each_entry(X, job.list[a], [=](i64 i, double v) { slopes[i] += step * curvatures[i] * v; });
        if (mass > 0.0) beta -= step * hx[a] / mass;
    }

    // The majorant of the group has the Hessian diag(bound), and its minimum at x_a = c_a r/(bound_a r + weight), where
    // c = bound x - slope and r = |x| is the root of sum c_a^2/(bound_a r + weight)^2 = 1.
    double settle_group(i64 c) {
        const i64 from = job.first[c], to = job.first[c + 1];
        const double price = job.weights[c];
        double most = 0;
        for (i64 a = from; a < to; ++a) {
            work += (double)entries_of(X, job.list[a]);
            slope[a] = slope_at(a);
            bound[a] = spread[c] * curve[a];
            most = larger(most, bound[a]);
        }
        const double found = violation(c, x, slope);
        if (found == 0.0 || (!(most > 0.0) && norm(c, slope) > price)) return 0.0;
        double least = most, square = 0;
        for (i64 a = from; a < to; ++a) {
            bound[a] = larger(bound[a], 1e-12 * most);
            least = bound[a] < least ? bound[a] : least;
            slope[a] = bound[a] * x[a] - slope[a];
            square += slope[a] * slope[a];
        }
        const double length = __builtin_sqrt(square), over = length - price;
        double root = 0;
        if (over > 0.0 && most > 0.0) {
            const double low = over / most, high = over / least;
            root = low;
            for (int step = 0; step < kSecular; ++step) {
                double sum = 0, falls = 0;
                for (i64 a = from; a < to; ++a) {
                    const double under = bound[a] * root + price, part = slope[a] * slope[a] / (under * under);
                    sum += part;
                    falls += part * bound[a] / under;
                }
                const double excess = __builtin_sqrt(sum) - 1.0;
                if (__builtin_fabs(excess) <= 1e-14) break;
                const double next = root + excess * sum / falls;
                const double within = next < low ? low : next > high ? high : next;
                if (within == root) break;
                root = within;
            }
        }
        for (i64 a = from; a < to; ++a) {
            const double next = root > 0.0 ? slope[a] * root / (bound[a] * root + price) : 0.0;
            if (next != x[a]) place_at(a, next);
        }
        return found;
    }

    void minimise(double eta, bool far) {
        const double enough = eta;  // relative to the weights
        const int rounds = far ? kFarRounds : kModelRounds;
        for (int round = 0; round < rounds && (round == 0 || work < budget()); ++round) {
            double most = 0;
            for (i64 c = 0; c < job.groups; ++c) {
                const i64 ahead = job.first[c] + kAhead;
                if (ahead < k) fetch_row(X, job.list[ahead]);
                if (c % kFewColumns == 0) poll();
                most = larger(most, settle(c));
            }
            ++sweeps;
            if (most <= enough) return;
            bool settled = false;
            const int most_sweeps = chol.n > 0 ? 1 : kSupportSweeps;  // with a factor, conjugate gradients are faster
            for (int sweep = 0; sweep < most_sweeps && !settled; ++sweep) {
                double inner = 0;
                poll();
                for (i64 c = 0; c < job.groups; ++c)
                    if (norm(c, x) != 0.0) inner = larger(inner, settle(c));
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
        for (i64 c = 0; c < m; ++c) out[c] = r[c] / diagonal[on[c]];
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
        if (singles()) return;
        for (i64 c = 0; c < m; ++c) {
            const i64 a = on[c];
            S[c * m + c] += bend[a];
            for (i64 e = c; e < m && owner[on[e]] == owner[a]; ++e) S[c * m + e] -= bend[a] * unit[a] * unit[on[e]];
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

    // Newton step of the model on the current support: its minimum for the current signs if all groups are single.
    void conjugate_gradients(double enough) {
        i64 m = 0;
        double entries = (double)n, rho = 0;
        for (i64 c = 0; c < job.groups; ++c) {
            const double length = norm(c, x);
            if (length == 0.0) continue;
            const bool smooth = size(c) > 1;
            for (i64 a = job.first[c]; a < job.first[c + 1]; ++a) {
                unit[a] = x[a] / length;
                bend[a] = smooth ? job.weights[c] / length : 0.0;
                diagonal[a] = curve[a] + bend[a] * (1.0 - unit[a] * unit[a]);
                if (!(diagonal[a] > 0.0)) diagonal[a] = 1.0;
                r[m] = start[m] = -(slope_at(a) + job.weights[c] * unit[a]);
                move[m] = 0.0;
                entries += (double)entries_of(X, job.list[a]);
                on[m++] = a;
            }
        }
        if (m == 0) return;
        bool fresh = true;  // restart with the current preconditioner
        bool converged = false;
        for (int step = 0; step < most_gradients && work < 1.5 * budget(); ++step) {
            double most = 0;
            poll();
            for (i64 c = 0; c < m; ++c) most = larger(most, __builtin_fabs(r[c]) / weight(on[c]));
            converged = most <= enough;
            if (converged) break;
            if (m <= kFactor && spent > 0.5 * price(m, entries)) {
                factor(m);
                fresh = true;
            }
            if (fresh) {
                precondition(m, p);
                rho = dot_n(r, p, m);
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
                sp[c] = X.dot_row(job.list[a], y) + ridge(a) * p[c];
                length += p[c] * p[c] * diagonal[a];
            }
            if (!singles()) add_bends(m, p, sp);
            for (i64 c = 0; c < m; ++c) curved += p[c] * sp[c];
            spent += 2.0 * entries;
            work += 2.0 * entries;
            ++gradients;
            if (!(curved > 1e-14 * length)) {  // no curvature: move as far as the kinks allow
                if (step == 0)
                    for (i64 c = 0; c < m; ++c) move[c] = p[c];
                break;
            }
            const double alpha = rho / curved;
            for (i64 c = 0; c < m; ++c) {
                move[c] += alpha * p[c];
                r[c] -= alpha * sp[c];
            }
            precondition(m, sp);
            const double now = dot_n(r, sp, m), ratio = now / rho;
            for (i64 c = 0; c < m; ++c) p[c] = sp[c] + ratio * p[c];
            rho = now;
            if (!(now > 0.0)) break;
        }
        ++solves;
        const bool whole = singles() ? along_kinks(m) : along_norms(m);
        if (whole && !converged) most_gradients *= 2;  // a restart would lose what they know of the spectrum
    }

    // out += the product of the Hessian of the norms and v, on the support
    void add_bends(i64 m, const double* v, double* out) const {
        for (i64 from = 0, to = 0; from < m; from = to) {
            double sum = 0;
            for (to = from; to < m && owner[on[to]] == owner[on[from]]; ++to) sum += unit[on[to]] * v[to];
            for (i64 c = from; c < to; ++c) out[c] += bend[on[c]] * (v[c] - unit[on[c]] * sum);
        }
    }
    // Derivative of the norms at x + length move along `move`
    double along_groups(i64 m, double length) const {
        double total = 0;
        for (i64 from = 0, to = 0; from < m; from = to) {
            double square = 0, product = 0;
            for (to = from; to < m && owner[on[to]] == owner[on[from]]; ++to) {
                const double at = x[on[to]] + length * move[to];
                square += at * at;
                product += at * move[to];
            }
            if (square > 0.0) total += weight(on[from]) * product / __builtin_sqrt(square);
        }
        return total;
    }
    // Minimise the model along `move`; take a full step if the derivative there is small. Return whether it was.
    bool along_norms(i64 m) {
        double slope_0 = 0, sum = 0, curved = 0;
        for (i64 c = 0; c < m; ++c) slope_0 -= start[c] * move[c];
        if (!(slope_0 < 0.0)) return false;
        combine(on, m, move, y);
        for (i64 i = 0; i < n; ++i) sum += h[i] * y[i];
        const double mean = mass > 0.0 ? sum / mass : 0.0;
        for (i64 i = 0; i < n; ++i) curved += h[i] * (y[i] - mean) * (y[i] - mean);
        for (i64 c = 0; c < m; ++c) curved += ridge(on[c]) * move[c] * move[c];
        const double straight = slope_0 - along_groups(m, 0.0);
        const auto derivative = [&](double s) { return straight + s * curved + along_groups(m, s); };
        double low = 0, high = 1, length = 1;
        if (__builtin_fabs(derivative(1.0)) > -0.1 * slope_0) {
            while (high < 1e6 && derivative(high) < 0.0) low = high, high *= 4.0;
            for (int step = 0; step < kBisections; ++step) {
                length = 0.5 * (low + high);
                const double now = derivative(length);
                if (__builtin_fabs(now) <= -1e-3 * slope_0) break;
                (now < 0.0 ? low : high) = length;
            }
        }
        for (i64 c = 0; c < m; ++c) x[on[c]] += length * move[c];
        for (i64 i = 0; i < n; ++i) q[i] += length * h[i] * y[i];
        if (mass > 0.0) beta -= length * mean;
        return length == 1.0;
    }

    // Exact line search of the model along `move`, the step of conjugate gradients; return whether no sign changed.
    bool along_kinks(i64 m) {
        double fall = 0, curved = 0;
        Kinks kinks{p, order};
        for (i64 c = 0; c < m; ++c) {
            fall -= start[c] * move[c];
            curved += move[c] * (start[c] - r[c]);
            if (move[c] * x[on[c]] < 0.0) kinks.add(-x[on[c]] / move[c], c);
        }
        if (!(fall < 0.0)) return false;
        const Landing end = minimum_along(kinks, fall, larger(curved, 0.0),
                                          [this](i64 c) { return weight(on[c]) * __builtin_fabs(move[c]); });
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
        return !end.crossed;
    }
};

}  // namespace
}  // namespace linsep::LINSEP_ARCH
