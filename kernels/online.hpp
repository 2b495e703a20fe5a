// Learning one row at a time: perceptron passes, stochastic sub-gradient steps, and the losses of several points at
// once.
#pragma once
#include "dual_cd.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

// ---- Perceptron (Rosenblatt 1958, Novikoff 1962) ---------------------------------------------------------------
// w += a sign x wherever sign (x.w + b) <= 0, with a = 1 (raw) or a = 1/|(x, 1)| (normalised). Margins are taken for a
// block of rows at once; a mistake ends its block, and blocks grow again while none is made. A margin that an update
// made stale could be repaired by the product of two rows, but that costs as much as a fresh one, which is exact.
constexpr int kLongestBlock = 16;

template <class R>
struct PerceptronPass {
    const R& X;
    const double* sign;
    const PerceptronJob& job;
    double* theta;
    // counts: place of the next row, rows since the last mistake, updates, rows visited, row of the least margin
    i64 &place = job.counts[0], &clean = job.counts[1], &updates = job.counts[2], &visited = job.counts[3],
        &worst = job.counts[4];
    // numbers: |(w, b)|^2, least margin of this pass
    double &norm2 = job.numbers[0], &least = job.numbers[1];

    // A row of length 0 (no intercept) has margin 0 for ever: no update can help it.
    bool mistaken(i64 i, double margin) const {
        if (margin > 0.0 || job.lengths[i] == 0.0) return false;
        return !(job.online && sign[i] > 0.0 && margin == 0.0);  // online: the prediction at 0 is +1
    }
    void update(i64 i, double margin) {
        const double a = job.normalised ? 1.0 / __builtin_sqrt(job.lengths[i]) : 1.0, step = a * sign[i];
        X.axpy(i, step, theta);
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
    }

    // Rows in their own order, round and round; with `restart` from row 0 again after each update.
    void cyclic(i64 until, bool restart) {
        double z[kLongestBlock];
        int block = kLongestBlock;
        while (clean < X.n && visited < until && updates < job.max_updates) {
            if (place >= X.n) {
                if (job.online) return;  // one pass and no more
                place = 0;
            }
            const int nb = (int)min64(block, X.n - place);
            X.dots(place, nb, theta, theta[X.d], z);
            int q = 0;
            double margin = 0;
            for (; q < nb && clean < X.n; ++q, ++clean) {
                ++visited;
                margin = sign[place + q] * z[q];
                if (mistaken(place + q, margin)) break;
            }
            block = (int)min64(2 * block, kLongestBlock);
            if (q < nb && clean < X.n) {
                update(place + q, margin);
                block = q < 2 ? 1 : q / 2;
                ++q;
            }
            place = restart && clean == 0 ? 0 : place + q;
        }
    }
    // One pass in a given order.
    void listed(i64 until) {
        for (; place < X.n && visited < until && updates < job.max_updates; ++place) {
            const i64 i = job.order[place];
            if (place + 2 < X.n) fetch_row(X, job.order[place + 2]);
            const double margin = sign[i] * (X.dot_row(i, theta) + theta[X.d]);
            ++visited;
            if (mistaken(i, margin))
                update(i, margin);
            else
                ++clean;
        }
    }
    // The row of the least margin (divided by its length when normalised), sought in a full pass for each update.
    void most_violated(i64 until) {
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
                update(worst, job.normalised ? least * __builtin_sqrt(job.lengths[worst]) : least);
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
            return pass.listed(until);
        case Select::worst:
            return pass.most_violated(until);
        default:
            return pass.cyclic(until, job.select == Select::first);
    }
}

// ---- Stochastic sub-gradient steps ------------------------------------------------------------------------------
// Minimise lam/2 |w|^2 + mean of l(m), b free. A step at the rows of one batch:
//   w <- (1 - eta lam) w - eta mean(s sign l'(m) x),   b <- b - eta mean(s sign l'(m)).
// w = factor * v, so that shrinking w costs one multiplication. The sum of the iterates, weighted by their step number t
// (Lacoste-Julien, Schmidt, Bach 2012), is kept by partial summation (Xu 2011): with R_T = sum_t t factor_t,
//   sum_t t w_t = R_T v_T - sum_t R_{t-1} (v_t - v_{t-1}),
// so that a step costs the entries of its rows and nothing more.

// Slopes at one margin. At a kink they are those of the falling side: the tie updates.
struct SlopeOf {
    LossSpec spec;
    double operator()(double m) const {
        const double r = 1.0 - m, width = spec.width;
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

// One column: the coefficients of one class against the others.
template <class R>
struct Descent {
    const R& X;
    const SgdJob& job;
    double* v;    // (d + 1), the intercept in plain view at its end
    double* sum;  // (d + 1) or null
    double factor, reach;

    // Back to plain coefficients.
    void unfold() {
        const i64 d = X.d;
        if (sum && reach != 0.0)
            for (i64 j = 0; j < d; ++j) sum[j] += reach * v[j];
        if (factor != 1.0)
            for (i64 j = 0; j < d; ++j) v[j] *= factor;
        factor = 1.0;
        reach = 0.0;
    }
    double margin(double sign, i64 i) const { return sign * (factor * X.dot_row(i, v) + v[X.d]); }
    void shrink(double by) {
        factor *= by;
        if (!(factor > (sum ? 1e-4 : 1e-9))) unfold();  // the sum loses the digits that v gains
    }
    void add(i64 i, double a) {
        if (a == 0.0) return;
        X.axpy(i, a / factor, v);
        if (sum) X.axpy(i, -reach * (a / factor), sum);
        if (job.intercept) v[X.d] += a;
    }
    void count(double t) {
        if (!sum) return;
        reach += t * factor;
        sum[X.d] += t * v[X.d];
    }
};

constexpr int kRowsAhead = 6;  // rows are sent for this many steps before their turn
// Rows draws[0 .. count) in batches; W (columns, d + 1). Column c is for class c, or class 1 if there are two.
template <class R>
void sgd(const R& X, const Classes& y, LossSpec spec, const SgdJob& job, const i64* draws, i64 count, double* W,
         double* sums, double* scratch) {
    const i64 columns = y.k == 2 ? 1 : y.k, order = X.d + 1;
    const SlopeOf slope{spec};
    double *a = scratch, *kept = scratch + job.batch;  // of each column: factor, reach
    for (i64 c = 0; c < columns; ++c) kept[2 * c] = 1.0, kept[2 * c + 1] = 0.0;
    const auto column = [&](i64 c) {
        return Descent<R>{X, job, W + c * order, sums ? sums + c * order : nullptr, kept[2 * c], kept[2 * c + 1]};
    };
    for (i64 at = 0, t = job.first; at + job.batch <= count; at += job.batch, ++t) {
        const i64* rows = draws + at;
        if (job.batch == 1 && at + kRowsAhead < count) {
            __builtin_prefetch(y.label + draws[at + kRowsAhead]);
            fetch_row(X, draws[at + kRowsAhead]);
        }
        for (i64 c = 0; c < columns; ++c) {
            Descent<R> one = column(c);
            const i64 positive = columns == 1 ? 1 : c;
            const double eta = step_size(job, c, t), share = eta / job.total;
            for (i64 q = 0; q < job.batch; ++q) {
                const i64 i = rows[q];
                const double sign = y.label[i] == positive ? 1.0 : -1.0;
                a[q] = -share * sign * slope(one.margin(sign, i)) * (y.weight ? y.weight[i] : 1.0);
            }
            one.shrink(1.0 - eta * job.lam);
            for (i64 q = 0; q < job.batch; ++q) one.add(rows[q], a[q]);
            one.count((double)(t + 1));
            kept[2 * c] = one.factor, kept[2 * c + 1] = one.reach;
        }
    }
    for (i64 c = 0; c < columns; ++c) column(c).unfold();
}

// ---- The losses of several points in one read of the rows -------------------------------------------------------
// W (d + 1, K), K a multiple of 8; column j is judged against class of[j]. out[j] += sum s l(m).
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
        loss.at(nr * (int)K, spec.width, m, value, slope, curvature);
        for (int i = 0; i < nr; ++i) {
            const vd s = splat(y.weight ? y.weight[r + i] : 1.0);
            for (i64 j = 0; j < K; j += VL) store(out + j, load(out + j) + s * load(value + i * K + j));
        }
    }
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
