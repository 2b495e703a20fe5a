// Prox-Newton for an absolute penalty on a few of many features, by the columns of X.
//
// Problem  min  sum s l(m) + l2/2 |w|^2 + l1 |w|_1  over the weights of `count` features and the intercept. The rows
// of the template argument R are the columns of X (CSC is CSR of the transpose). Each step minimises the quadratic model
// plus the penalty by coordinate descent on the slopes q = s sign l' + h x.(step): a visit costs the entries
// of one column. The intercept is eliminated: after every move of a coordinate it is at the minimum of the model, for
// the price of one multiplication. Once descent has found who takes part, conjugate gradients on the support finish,
// and where they would change a sign the step ends at the best of the kinks on the way.
//
// The Newton-dual point (closing.hpp) of the last step is then feasible but for the residual of the model, which is what
// `eta` bounds; the fit ends on the duality gap of these features.
//
// References: Yuan, Ho and Lin, An improved GLMNET, 2012; Lee, Battle, Raina and Ng, feature-sign search, 2007.
#pragma once
#include <cstdlib>

#include "cholesky.hpp"
#include "free_set.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

template <class T, class F>
inline void each_entry(const DenseRows<T>& X, i64 j, F f) {
    const T* x = X.row(j);
    for (i64 i = 0; i < X.d; ++i) f(i, (double)x[i]);
}
template <class T, class I, class F>
inline void each_entry(const CsrRows<T, I>& X, i64 j, F f) {
    for (i64 p = X.start[j]; p < X.start[j + 1]; ++p) f((i64)X.index[p], (double)X.x[p]);
}

template <class T>
inline i64 entries_of(const DenseRows<T>& X, i64) {
    return X.d;
}
template <class T, class I>
inline i64 entries_of(const CsrRows<T, I>& X, i64 j) {
    return X.start[j + 1] - X.start[j];
}
inline double larger(double a, double b) { return a > b ? a : b; }

constexpr int kModelRounds = 60;   // of descent and conjugate gradients for one model
constexpr int kSupportSweeps = 5;  // of descent over the support before conjugate gradients
constexpr int kGradients = 150;    // steps of conjugate gradients in a round
constexpr int kFarRounds = 3;      // of descent alone while the model is not worth more
constexpr double kFar = 0.3;       // breach of the conditions, as a share of l1, above which it is not
constexpr i64 kFactor = 1500;      // features of a support that is factored
constexpr int kHalvings = 30;
constexpr double kBudget = 3e8;  // entries to visit, after which the call returns at the next step

template <class R>
struct ColumnFit {
    const R& X;
    Targets t;
    LossSpec spec;
    ColumnJob job;
    i64 n, k;
    double *w, *z;                                           // the caller's: weights and intercept [k + 1], scores [n]
    double *q, *h, *dz, *y;                                  // per row
    double *x, *g, *hx, *curve, *r, *p, *sp, *move, *start;  // per feature
    i64 *on, *order, *place;                                 // place: of a feature in the factor, or -1
    Cholesky chol{0, nullptr, nullptr, 0.0};
    double *room = nullptr, *rhs = nullptr, *solved = nullptr;  // of the factor
    double spent = 0;                                           // work of conjugate gradients since it was made
    double P = 0, mass = 0, slope_b = 0, beta = 0, damping = 0;
    double work = 0;  // entries visited
    int stalls = 0;
    ColumnReport report{};

    ColumnFit(const R& columns, Targets targets, LossSpec s, ColumnJob j, double* weights, double* scores, double* at,
              i64* lists)
        : X(columns), t(targets), spec(s), job(j), n(columns.d), k(j.count), w(weights), z(scores) {
        const auto take = [&at](i64 count) {
            double* from = at;
            at += count + 8;
            return from;
        };
        q = take(n), h = take(n), dz = take(n), y = take(n);
        x = take(k), g = take(k), hx = take(k), curve = take(k);
        r = take(k), p = take(k), sp = take(k), move = take(k), start = take(k);
        on = lists, order = lists + k, place = lists + 2 * k;
    }

    ~ColumnFit() { std::free(room); }
    ColumnFit(const ColumnFit&) = delete;
    ColumnFit& operator=(const ColumnFit&) = delete;

    double penalty(const double* v) const {
        double sum = 0;
        for (i64 a = 0; a < k; ++a) sum += job.l1 * __builtin_fabs(v[a]) + 0.5 * job.l2 * v[a] * v[a];
        return sum;
    }

    // Sum of the losses at z + step (dz + beta); with slopes and curvatures if wanted.
    double losses(double step, bool derivatives) {
        Chunk c;
        double sum = 0;
        const LossOps loss = ops(spec.id);
        for (i64 i0 = 0; i0 < n; i0 += kMaxChunk) {
            const int nr = (int)min64(kMaxChunk, n - i0), np = padded(nr);
            if (step == 0.0)
                for (int i = 0; i < nr; ++i) c.m[i] = z[i0 + i];
            else
                for (int i = 0; i < nr; ++i) c.m[i] = z[i0 + i] + step * (dz[i0 + i] + beta);
            margins(c, t, i0, nr);
            loss.at(np, spec.width, c.m, c.value, c.slope, c.curvature);
            sum += weighted_total(c.value, c.weight, np) + not_finite(c.m, np);
            if (derivatives && damping > 0.0)
                for (int i = 0; i < nr; ++i) c.curvature[i] = larger(c.curvature[i], damping * most_curved());
            if (derivatives)
                for (int i = 0; i < nr; ++i) {
                    q[i0 + i] = c.weight[i] * t.sign[i0 + i] * c.slope[i];
                    h[i0 + i] = c.weight[i] * c.curvature[i];
                }
        }
        return sum;
    }

    // Rows far on their side have no curvature left, and a step that follows such a model goes far too far. When P would
    // not fall, every curvature is held above a share of its bound: with the whole of it the model lies above P.
    double most_curved() const {
        switch (spec.id) {
            case LossId::logistic:
                return 0.25;
            case LossId::squared:
            case LossId::squared_hinge:
                return 2.0;
            default:
                return 1.0;
        }
    }

    // Gradient and diagonal of the model at w; returns the largest breach of the optimality conditions there.
    double model() {
        mass = slope_b = 0.0;
        if (job.intercept)
            for (i64 i = 0; i < n; ++i) mass += h[i], slope_b += q[i];
        double most = 0;
        for (i64 a = 0; a < k; ++a) {
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
    double breach(double at, double slope) const {
        if (at == 0.0) return larger(__builtin_fabs(slope) - job.l1, 0.0);
        return __builtin_fabs(slope + (at > 0.0 ? job.l1 : -job.l1));
    }
    double slope_at(i64 a) const { return X.dot_row(job.list[a], q) + beta * hx[a] + job.l2 * x[a]; }

    // One coordinate to its minimum, the intercept following; returns the breach it found.
    double settle(i64 a) {
        work += (double)entries_of(X, job.list[a]);
        const double slope = slope_at(a), found = breach(x[a], slope);
        if (found == 0.0 || (!(curve[a] > 0.0) && __builtin_fabs(slope) > job.l1)) return 0.0;
        // without curvature |slope| <= l1 leads straight to 0
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
                most = larger(most, settle(a));
            }
            ++report.sweeps;
            if (most <= enough) return;
            bool settled = false;
            for (int sweep = 0; sweep < kSupportSweeps && !settled; ++sweep) {
                double inner = 0;
                for (i64 a = 0; a < k; ++a)
                    if (x[a] != 0.0) inner = larger(inner, settle(a));
                settled = inner <= 0.3 * enough;
            }
            if (!settled && !far) conjugate_gradients(0.2 * enough);
        }
    }

    // dz += sum of the columns times v, over the features of the list
    void combine(const i64* list, i64 count, const double* v, double* out) {
        for (i64 i = 0; i < n; ++i) out[i] = 0.0;
        for (i64 c = 0; c < count; ++c) {
            if (c + kAhead < count) fetch_row(X, job.list[list[c + kAhead]]);
            if (v[c] != 0.0) X.axpy(job.list[list[c]], v[c], out);
        }
    }

    // p = M^-1 r over the support: by the last factor where it knows the feature, by the diagonal elsewhere.
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
    // The Hessian of the model on the support, factored: from now on the preconditioner.
    void factor(i64 m) {
        std::free(room);
        room = static_cast<double*>(std::malloc(sizeof(double) * (size_t)(2 * m * m + 3 * m)));
        spent = 0.0;
        chol.n = 0;
        if (!room) return;
        double* S = room;
        chol.U = room + m * m;
        chol.scale = chol.U + m * m, rhs = chol.scale + m, solved = rhs + m;
        for (i64 i = 0; i < n; ++i) y[i] = 0.0;
        double* rows = y;
        for (i64 a = 0; a < k; ++a) place[a] = -1;
        for (i64 c = 0; c < m; ++c) {
            const i64 a = on[c];
            place[a] = c;
            each_entry(X, job.list[a], [&](i64 i, double v) { rows[i] = h[i] * v; });
            for (i64 e = c; e < m; ++e) {
                double s = X.dot_row(job.list[on[e]], y);
                if (mass > 0.0) s -= hx[a] * hx[on[e]] / mass;
                S[c * m + e] = s;
            }
            each_entry(X, job.list[a], [&](i64 i, double) { rows[i] = 0.0; });
            S[c * m + c] = curve[a] * (1.0 + 1e-10);
        }
        chol.n = m;
        chol.factor(S, false);
    }

    // The minimum of the model among the weights with this support and these signs, as far as the signs hold.
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
        bool fresh = true;  // begin anew, with the present preconditioner
        for (int step = 0; step < kGradients && work < 1.5 * kBudget; ++step) {
            double most = 0;
            for (i64 c = 0; c < m; ++c) most = larger(most, __builtin_fabs(r[c]));
            if (most <= enough) break;
            // Worth a factor once as much work went into descending without one.
            const double price = (double)m * (0.5 * entries + (double)m * (double)m / 12.0);
            if (m <= kFactor && spent > price) {
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
            ++report.gradients;
            if (!(curved > 1e-14 * length)) {  // flat: go as far as the kinks allow
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
        ++report.solves;
        along_kinks(m);
    }

    // Moves the support along `move`, the way found by conjugate gradients, to the minimum of the model on that way: its
    // derivative grows with the curvature and by 2 l1 |move| wherever a weight changes its sign.
    void along_kinks(i64 m) {
        double slope = 0, curved = 0;
        i64 kinks = 0;
        for (i64 c = 0; c < m; ++c) {
            slope -= start[c] * move[c];
            curved += move[c] * (start[c] - r[c]);
            if (move[c] * x[on[c]] < 0.0) {
                p[kinks] = -x[on[c]] / move[c];
                order[kinks++] = c;
            }
        }
        if (!(slope < 0.0)) return;
        if (!(curved > 0.0)) curved = 0.0;
        for (i64 c = kinks / 2 - 1; c >= 0; --c) sift(c, kinks);
        double step = 0, landed = -1;
        for (;;) {
            const double meets = curved > 0.0 ? step - slope / curved : -1.0;  // where the derivative vanishes
            if (kinks == 0) {
                if (curved > 0.0) step = meets;
                break;
            }
            if (curved > 0.0 && meets <= p[0]) {
                step = meets;
                break;
            }
            const double next = p[0];
            const i64 c = order[0];
            slope += curved * (next - step) + 2.0 * job.l1 * __builtin_fabs(move[c]);
            step = next;
            --kinks;
            p[0] = p[kinks], order[0] = order[kinks];
            sift(0, kinks);
            if (slope >= 0.0) {
                landed = (double)c;
                break;
            }
        }
        for (i64 c = 0; c < m; ++c) {
            const i64 a = on[c];
            const double to = (double)c == landed ? 0.0 : x[a] + step * move[c];
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
    // p is a heap, the least first; order goes along
    void sift(i64 at, i64 count) {
        for (i64 child; (child = 2 * at + 1) < count; at = child) {
            if (child + 1 < count && p[child + 1] < p[child]) ++child;
            if (!(p[child] < p[at])) return;
            const double kept = p[at];
            const i64 name = order[at];
            p[at] = p[child], order[at] = order[child];
            p[child] = kept, order[child] = name;
        }
    }

    // The bound that the Newton-dual point of this model proves on these features; -1 where it is infeasible.
    double dual_bound() {
        Chunk c;
        double u[kRoom], conj[kRoom], inside[kRoom], sum = 0;
        const LossOps loss = ops(spec.id);
        for (i64 i0 = 0; i0 < n; i0 += kMaxChunk) {
            const int nr = (int)min64(kMaxChunk, n - i0), np = padded(nr);
            for (int i = 0; i < np; ++i) u[i] = c.weight[i] = 0.0;
            for (int i = 0; i < nr; ++i) {
                c.weight[i] = t.weight ? t.weight[i0 + i] : 1.0;
                const double v = t.sign[i0 + i] * c.weight[i];
                u[i] = v != 0.0 ? -(q[i0 + i] + h[i0 + i] * beta) / v : 0.0;
            }
            loss.conjugate(np, spec.width, u, conj, inside);
            for (int i = 0; i < nr; ++i) {
                if (c.weight[i] == 0.0) continue;
                if (inside[i] == 0.0) return -1.0;
                sum += c.weight[i] * (conj[i] + (t.offset ? u[i] * t.offset[i0 + i] : 0.0));
            }
        }
        double most = job.l1, squares = 0;
        for (i64 a = 0; a < k; ++a) {
            const double v = __builtin_fabs(X.dot_row(job.list[a], q) + beta * hx[a]), over = v - job.l1;
            most = larger(most, v);
            if (over > 0.0) squares += over * over;
        }
        return job.l2 > 0.0 ? -sum - 0.5 * squares / job.l2 : -sum * (job.l1 / most);
    }

    // base and step [k + 1] become those of the Newton-dual point of the last step.
    // status: 0 step limit, 1 gap <= tol, 2 no more to gain, 4 not finite
    ColumnReport run(double* base, double* step) {
        P = losses(0.0, true) + penalty(w);
        double best = 1e300;
        for (report.steps = 0; report.steps < job.max_steps && work < kBudget; ++report.steps) {
            if (!(P - P == 0.0)) return finish(4);
            const double share = model() / job.l1;
            const double eta = larger(0.25 * job.tol, share < 1.0 ? 0.1 * share : 0.1);
            minimise(eta, share > kFar);
            double decrease = -slope_b * beta - penalty_change();
            for (i64 a = 0; a < k; ++a) move[a] = x[a] - w[a], order[a] = a;
            combine(order, k, move, dz);
            const bool near = damping == 0.0 && decrease <= 0.1 * P;
            const double bound = near ? dual_bound() : -1.0;
            const double next = losses(1.0, true) + penalty(x);
            if (bound > 0.0 && next - bound <= job.tol * next) {
                report.gap = best = (next - bound) / next;
                keep(base, step);
                advance(1.0);
                P = next;
                return finish(1);
            }
            if (bound > 0.0 && next - bound < best * next) report.gap = best = (next - bound) / next;
            keep(base, step);
            if (next < P && next <= P - 1e-4 * decrease) {
                advance(1.0);
                P = next;
                if (damping > 0.0) {
                    damping = damping > 1e-3 ? 0.1 * damping : 0.0;
                    losses(0.0, true);
                }
                continue;
            }
            if (!(decrease > 1e-14 * P)) {  // P can tell no more
                if (!(next <= P * (1.0 + 1e-14)))
                    losses(0.0, true);
                else
                    advance(1.0), P = next;
                if (++stalls > 3) return finish(2);
                continue;
            }
            if (!shorter(decrease)) {
                if (damping >= 1e6) return finish(2);
                damping = larger(10.0 * damping, 1e-3);
                losses(0.0, true);
            }
        }
        return finish(0);
    }

    // What the model promises the penalised part to change by, its slope at w taken: l1 and g
    double penalty_change() const {
        double sum = 0;
        for (i64 a = 0; a < k; ++a)
            sum += g[a] * (x[a] - w[a]) + job.l1 * (__builtin_fabs(x[a]) - __builtin_fabs(w[a]));
        return sum;
    }
    void keep(double* base, double* step) const {
        for (i64 a = 0; a < k; ++a) base[a] = w[a], step[a] = x[a] - w[a];
        base[k] = w[k];
        step[k] = beta;
    }
    void advance(double length) {
        for (i64 a = 0; a < k; ++a) w[a] = length == 1.0 ? x[a] : w[a] + length * (x[a] - w[a]);
        for (i64 i = 0; i < n; ++i) z[i] += length * (dz[i] + beta);
        w[k] += length * beta;
    }
    // The first of some shorter steps at which P is low enough; false if it is so short that the model must be wrong.
    bool shorter(double decrease) {
        double length = 0.5;
        for (int half = 0; half < kHalvings; ++half, length *= 0.5) {
            double part = losses(length, false);
            for (i64 a = 0; a < k; ++a) {
                const double v = w[a] + length * (x[a] - w[a]);
                part += job.l1 * __builtin_fabs(v) + 0.5 * job.l2 * v * v;
            }
            if (part < P && part <= P - 1e-4 * length * decrease) {
                advance(length);
                losses(0.0, true);
                P = part;
                return true;
            }
            if (length < 0.1) return false;
        }
        return false;
    }
    ColumnReport finish(int status) {
        report.status = status;
        report.primal = P;
        return report;
    }
};

}  // namespace
}  // namespace linsep::LINSEP_ARCH
