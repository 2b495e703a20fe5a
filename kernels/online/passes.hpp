// Online learning: perceptron passes, stochastic subgradient steps, and the losses of several models in one pass.
#pragma once
#include "dual/coordinate_ascent.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

// Number of steps by which rows are prefetched: few for long rows, more for short ones.
template <class R>
i64 ahead_of_time(const R& X) {
    const i64 bytes = 12 * X.n_entries() / (X.n > 0 ? X.n : 1);
    return bytes > 1024 ? 2 : bytes > 512 ? 8 : 12;
}

// ---- Perceptron (Rosenblatt 1958, Novikoff 1962) ---------------------------------------------------------------
// w += a sign x wherever sign (x.w + b) <= 0, with a = 1 (raw) or a = 1/|(x, 1)| (normalised). Margins are computed for
// a block of rows at once; a mistake ends its block, and blocks grow again while there are no mistakes. A margin made
// stale by an update could be corrected by the product of two rows, but that costs as much as recomputing it, which is
// exact. Sparse rows do not benefit from blocks and are processed one by one.

template <class R>
struct PerceptronPass {
    static constexpr int kLongestBlock = R::dense ? 16 : 1;
    const R& X;
    const double* sign;
    const PerceptronJob& job;
    double* theta;
    // counts: position of the next row, rows since the last mistake, updates, rows visited, row of the smallest margin
    i64 &place = job.counts[0], &clean = job.counts[1], &updates = job.counts[2], &visited = job.counts[3],
        &worst = job.counts[4];
    // numbers: |(w, b)|^2, smallest margin of this pass
    double &norm2 = job.numbers[0], &least = job.numbers[1];

    // A row of norm 0 (without an intercept) always has margin 0: no update can change it.
    bool is_mistake(i64 i, double margin) const {
        if (margin > 0.0 || job.lengths[i] == 0.0) return false;
        return !(job.online && sign[i] > 0.0 && margin == 0.0);  // online: the prediction at 0 is +1
    }
    // Record an update; return the factor of the row.
    double record(i64 i, double margin) {
        const double a = job.normalised ? 1.0 / __builtin_sqrt(job.lengths[i]) : 1.0, step = a * sign[i];
        if (job.intercept) theta[X.d] += step;
        if (job.sum) {
            const double before = step * (double)(visited - 1);
            X.axpy(i, before, job.sum);
            if (job.intercept) job.sum[X.d] += before;
        }
        norm2 += 2.0 * a * margin + a * a * job.lengths[i];
        if (updates < job.room) {
            job.rows[updates] = i;
            job.norms[updates] = __builtin_sqrt(norm2 > 0.0 ? norm2 : 0.0);
        }
        ++updates;
        clean = 0;
        return step;
    }

    // Visit the rows cyclically; with `restart`, from row 0 again after each update. The update also computes the score
    // of the next row.
    void cyclic(i64 until, bool restart) {
        double z[kLongestBlock];
        int block = kLongestBlock;
        bool known = false;  // z[0] is the score of row `place`
        while (clean < X.n && visited < until && updates < job.max_updates) {
            if (place >= X.n) {
                if (job.online) return;  // a single pass
                place = 0;
            }
            const int nb = known ? 1 : (int)min64(block, X.n - place);
            if (!known) X.dots(place, nb, theta, theta[X.d], z);
            known = false;
            int q = 0;
            double margin = 0;
            for (; q < nb && clean < X.n; ++q, ++clean) {
                ++visited;
                margin = sign[place + q] * z[q];
                if (is_mistake(place + q, margin)) break;
            }
            block = (int)min64(2 * block, kLongestBlock);
            if (q == nb || clean >= X.n) {
                place += q;
                continue;
            }
            const i64 i = place + q;
            const double step = record(i, margin);
            block = q < 2 ? 1 : q / 2;
            place = restart ? 0 : i + 1;
            known = place < X.n;
            if (known)
                z[0] = X.axpy_dot(i, step, theta, place, min64(place + 1, X.n - 1)) + theta[X.d];
            else
                X.axpy(i, step, theta);
        }
    }
    // cyclic() for short rows: w stays in N registers, the last of them partly filled if Part, and rows are processed
    // one by one. Without mistakes, the processor overlaps several of them.
    template <int N, bool Part>
    void cyclic_narrow(i64 until, bool restart) {
        const i64 d = X.d, rest = d % VL;
        const auto piece = [rest](const auto* p, int v) {
            return Part && v + 1 == N ? load_first(p + v * VL, rest) : load(p + v * VL);
        };
        vd w[N];
        for (int v = 0; v < N; ++v) w[v] = piece(theta, v);
        i64 i = place, since = clean, seen = visited;
        double b = theta[d];
        for (; since < X.n && seen < until && updates < job.max_updates; ++i) {
            if (i >= X.n) {
                if (job.online) break;
                i = 0;
            }
            vd s[2] = {};
            for (int v = 0; v < N; ++v) s[v % 2] += piece(X.row(i), v) * w[v];
            const double margin = sign[i] * (total(s[0] + s[1]) + b);
            ++seen;
            if (margin > 0.0 || !is_mistake(i, margin)) {
                ++since;
                continue;
            }
            visited = seen;
            const double step = record(i, margin);
            for (int v = 0; v < N; ++v) w[v] += step * piece(X.row(i), v);
            b = theta[d];
            since = 0;
            if (restart) i = -1;
        }
        place = i, clean = since, visited = seen;
        for (int v = 0; v < N; ++v) {
            double t[VL];
            store(t, w[v]);
            for (i64 j = v * VL; j < d && j < (v + 1) * VL; ++j) theta[j] = t[j - v * VL];
        }
    }
    // Visit the rows once in a given order.
    void visit_listed(i64 until) {
        const i64 far = ahead_of_time(X);
        double z = place < X.n ? X.dot_row(job.order[place], theta) : 0.0;
        for (; place < X.n && visited < until && updates < job.max_updates; ++place) {
            const i64 i = job.order[place], next = job.order[min64(place + 1, X.n - 1)],
                      ahead = job.order[min64(place + far, X.n - 1)];
            const double margin = sign[i] * (z + theta[X.d]);
            ++visited;
            const bool wrong = is_mistake(i, margin);
            if (!wrong) ++clean;
            z = X.axpy_dot(i, wrong ? record(i, margin) : 0.0, theta, next, ahead);
        }
    }
    // Update the row of the smallest margin (divided by its norm if normalised), found by a full pass per update.
    void visit_most_violated(i64 until) {
        double z[kLongestBlock];
        while (clean < X.n && visited < until && updates < job.max_updates) {
            const int nb = (int)min64(kLongestBlock, X.n - place);
            X.dots(place, nb, theta, theta[X.d], z);
            for (int q = 0; q < nb; ++q) {
                const i64 i = place + q;
                const double margin = sign[i] * z[q];
                const double value = job.normalised ? margin / __builtin_sqrt(job.lengths[i]) : margin;
                if (job.lengths[i] > 0.0 && (worst < 0 || value < least)) least = value, worst = i;
            }
            visited += nb;
            if ((place += nb) < X.n) continue;
            place = 0;
            if (worst >= 0 && !(least > 0.0))
                X.axpy(worst, record(worst, job.normalised ? least * __builtin_sqrt(job.lengths[worst]) : least),
                       theta);
            else
                clean = X.n;
            worst = -1;
        }
    }
};

template <class R>
void perceptron(const R& X, const double* sign, const PerceptronJob& job, double* theta) {
    PerceptronPass<R> pass{X, sign, job, theta};
    const i64 until = job.counts[3] + job.budget;
    switch (job.select) {
        case Select::listed:
            return pass.visit_listed(until);
        case Select::worst:
            return pass.visit_most_violated(until);
        default:
            break;
    }
    const bool restart = job.select == Select::first;
    if constexpr (R::dense)
        if (X.d <= 8 * VL)
            return with_count((X.d + VL - 1) / VL, [&](auto N) {
                if constexpr (N.value > 0)
                    X.d % VL ? pass.template cyclic_narrow<N.value, true>(until, restart)
                             : pass.template cyclic_narrow<N.value, false>(until, restart);
            });
    pass.cyclic(until, restart);
}

// ---- Stochastic subgradient steps -------------------------------------------------------------------------------
// Minimise lam/2 |w|^2 + mean of l(m), with b not penalised. A step on the rows of one batch:
//   w <- (1 - eta lam) w - eta mean(s sign l'(m) x),   b <- b - eta mean(s sign l'(m)).
// w is stored as factor * v, so that shrinking w costs one multiplication. The sum of the iterates, weighted by their
// step number t (Lacoste-Julien, Schmidt, Bach 2012), is computed by partial summation (Xu 2011):
// with R_T = sum_t t factor_t,
//   sum_t t w_t = R_T v_T - sum_t R_{t-1} (v_t - v_{t-1}),
// so that a step costs only the entries of its rows.

// Slope at one margin. At a kink it is that of the decreasing side, so that a tie causes an update.
struct SlopeOf {
    LossSpec spec;
    double operator()(double m) const {
        const double r = kink_of(spec) - m, width = spec.shape.width;
        switch (spec.id) {
            case LossId::logistic: {
                const double e = decay(__builtin_fabs(m));
                return -(m >= 0.0 ? e : 1.0) / (1.0 + e);
            }
            case LossId::exponential:
                return m >= 0.0 ? -decay(m) : -1.0 / decay(-m);
            case LossId::squared:
                return -2.0 * r;
            case LossId::squared_hinge:
                return r > 0.0 ? -2.0 * r : 0.0;
            case LossId::huberised_hinge:
                return r > 0.0 ? -(r < width ? r / width : 1.0) : 0.0;
            case LossId::huber:
                return -(r > width ? width : r < -width ? -width : r);
            case LossId::hinge:
                return r >= 0.0 ? -1.0 : 0.0;
            case LossId::absolute:
                return r > 0.0 ? -1.0 : r < 0.0 ? 1.0 : 0.0;
            default:
                return m <= 0.0 ? -1.0 : 0.0;  // perceptron
        }
    }
};

inline double step_size(const SgdJob& job, i64 c, i64 t) {
    switch (job.schedule) {
        case Schedule::constant:
            return job.eta0[c];
        case Schedule::inverse:
            return job.eta0[c] / (1.0 + job.decay[c] * (double)t);
        case Schedule::inverse_sqrt:
            return job.eta0[c] / __builtin_sqrt(1.0 + job.decay[c] * (double)t);
        default:
            return job.eta0[t - job.first];  // listed, the same for all columns
    }
}

// One column of coefficients: one class against the others.
template <class R>
struct Descent {
    const R& X;
    const SgdJob& job;
    double* v;    // (d + 1), the intercept, unscaled, last
    double* sum;  // (d + 1) or null
    double factor, reach;

    // Multiply v by the factor, and bring the sum up to date.
    void unfold() {
        const i64 d = X.d;
        if (sum && reach != 0.0)
            for (i64 j = 0; j < d; ++j) sum[j] += reach * v[j];
        if (factor != 1.0)
            for (i64 j = 0; j < d; ++j) v[j] *= factor;
        factor = 1.0;
        reach = 0.0;
    }
    double score(i64 i) const { return factor * X.dot_row(i, v) + v[X.d]; }
    void shrink(double by) {
        factor *= by;
        if (!(factor > (sum ? 1e-4 : 1e-9))) unfold();  // as v grows, the sum loses accuracy
    }
    void add(i64 i, double a) {
        if (a == 0.0) return;
        X.axpy(i, a / factor, v);
        if (sum) X.axpy(i, -reach * (a / factor), sum);
        if (job.intercept) v[X.d] += a;
    }
    // add(i, a), and return x_next . v after it.
    double add_and_score(i64 i, double a, i64 next, i64 ahead) {
        if (job.intercept) v[X.d] += a;
        const double scaled = a / factor;
        return X.axpy_dot(i, scaled, v, next, ahead, -reach * scaled, sum);
    }
    void count(double t) {
        if (!sum) return;
        reach += t * factor;
        sum[X.d] += t * v[X.d];
    }
};

// Rows draws[0 .. count) in batches; W (columns, d + 1). Column c is for class c, or class 1 if there are two.
template <class R>
struct Steps {
    const R& X;
    const Classes& y;
    const SlopeOf slope;
    const SgdJob& job;
    double *W, *sums;
    double *kept, *z;  // for each column: factor and reach; score of the next row
    const i64 columns = y.k == 2 ? 1 : y.k;

    Descent<R> column(i64 c) const {
        const i64 order = X.d + 1;
        return {X, job, W + c * order, sums ? sums + c * order : nullptr, kept[2 * c], kept[2 * c + 1]};
    }
    double sign(i64 c, i64 i) const { return y.label[i] == (columns == 1 ? 1 : c) ? 1.0 : -1.0; }
    // Minus the step size times the derivative of the loss with respect to the score of row i.
    double pull(double share, double sign, double score, i64 i) const {
        return -share * sign * slope(sign * score) * (y.weight ? y.weight[i] : 1.0);
    }

    // Batches of one row: one loop adds the row, computes the score of the next, and prefetches a later one.
    void singly(const i64* draws, i64 count) const {
        const i64 far = ahead_of_time(X);
        for (i64 c = 0; c < columns; ++c) z[c] = X.dot_row(draws[0], W + c * (X.d + 1));
        for (i64 at = 0, t = job.first; at < count; ++at, ++t) {
            const i64 i = draws[at], next = draws[min64(at + 1, count - 1)], ahead = draws[min64(at + far, count - 1)];
            __builtin_prefetch(y.label + ahead);
            for (i64 c = 0; c < columns; ++c) {
                Descent<R> one = column(c);
                const double eta = step_size(job, c, t);
                const double a = pull(eta / job.total, sign(c, i), one.factor * z[c] + one.v[X.d], i);
                one.shrink(1.0 - eta * job.lam);
                z[c] = one.add_and_score(i, a, next, ahead);
                one.count((double)(t + 1));
                kept[2 * c] = one.factor, kept[2 * c + 1] = one.reach;
            }
        }
    }
    void in_batches(const i64* draws, i64 count, double* a) const {
        for (i64 at = 0, t = job.first; at + job.batch <= count; at += job.batch, ++t) {
            const i64* rows = draws + at;
            for (i64 c = 0; c < columns; ++c) {
                Descent<R> one = column(c);
                const double eta = step_size(job, c, t);
                for (i64 q = 0; q < job.batch; ++q)
                    a[q] = pull(eta / job.total, sign(c, rows[q]), one.score(rows[q]), rows[q]);
                one.shrink(1.0 - eta * job.lam);
                for (i64 q = 0; q < job.batch; ++q) one.add(rows[q], a[q]);
                one.count((double)(t + 1));
                kept[2 * c] = one.factor, kept[2 * c + 1] = one.reach;
            }
        }
    }
};

template <class R>
void sgd(const R& X, const Classes& y, LossSpec spec, const SgdJob& job, const i64* draws, i64 count, double* W,
         double* sums, double* scratch) {
    const i64 columns = y.k == 2 ? 1 : y.k;
    double* kept = scratch + job.batch;
    const Steps<R> steps{X, y, SlopeOf{spec}, job, W, sums, kept, kept + 2 * columns};
    for (i64 c = 0; c < columns; ++c) kept[2 * c] = 1.0, kept[2 * c + 1] = 0.0;
    if (job.batch > 1)
        steps.in_batches(draws, count, scratch);
    else if (count > 0)
        steps.singly(draws, count);
    for (i64 c = 0; c < columns; ++c) steps.column(c).unfold();
}

// ---- Losses of several models in one pass over the rows ---------------------------------------------------------
// W (d + 1, K), K a multiple of 8; column j separates class of[j] from the others. out[j] += sum s l(m).
template <class R>
void losses_k(const R& X, i64 lo, i64 hi, const Classes& y, LossSpec spec, const double* W, i64 K, const i64* of,
              double* out, double* scratch) {
    const LossOps loss = ops(spec.id);
    constexpr int kRows = 8;
    double *m = scratch, *value = m + kRows * K, *slope = value + kRows * K, *curvature = slope + kRows * K;
    for (i64 r = lo; r < hi; r += kRows) {
        const int nr = (int)min64(kRows, hi - r);
        X.dots_k(r, nr, W, K, m);
        for (int i = 0; i < nr; ++i)
            for (i64 j = 0; j < K; ++j) m[i * K + j] *= y.label[r + i] == of[j] ? 1.0 : -1.0;
        loss.at(nr * (int)K, spec.shape, m, value, slope, curvature);
        for (int i = 0; i < nr; ++i) {
            const vd s = splat(y.weight ? y.weight[r + i] : 1.0);
            for (i64 j = 0; j < K; j += VL) store(out + j, load(out + j) + s * load(value + i * K + j));
        }
    }
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
