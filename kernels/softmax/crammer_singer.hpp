// Passes of the multiclass hinge  l_i = max_c (z_c + 1[c != y]) - z_y = max over p in the simplex of sum_c p_c lead_c,
// lead_c = 1 + z_c - z_y off the label and 0 on it.
//
// The solver (src/linsep/solvers/multiclass/crammer_singer.py) minimises the losses of the proximal point method,
//   l_i(z) = max over p of  sum_c p_c lead_c - |p - p0|^2 / (2 sigma),   attained at p = projection of p0 + sigma lead
// onto the simplex. Scores, p0 and p are (n, K) with K = padded_classes(k); the padding is 0.
#pragma once
#include "softmax/closing.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

// Project p onto the simplex (Michelot 1986): remove the classes below the threshold until there are none. A removed
// class is set to -inf and never returns, so there are at most k rounds: thresholds increase in exact arithmetic, but a
// rounded one may decrease, and a class that is tested again might then alternate for ever. In most rows one class
// leads all others by 1 or more, and is the only one left.
inline void project(i64 k, double* p) {
    double top = p[0], second = -__builtin_inf();
    i64 best = 0;
    for (i64 c = 1; c < k; ++c) {
        const bool higher = p[c] > top;
        const double lower = higher ? top : p[c];
        second = lower > second ? lower : second;
        best = higher ? c : best;
        top = higher ? p[c] : top;
    }
    if (top - second >= 1.0) {
        for (i64 c = 0; c < k; ++c) p[c] = 0.0;
        p[best] = 1.0;
        return;
    }
    double sum = 0.0, threshold = 0.0;
    i64 count = k;
    for (i64 c = 0; c < k; ++c) sum += p[c] -= top;
    for (;;) {
        threshold = (sum - 1.0) / (double)count;
        double rest = 0.0;
        i64 left = 0;
        for (i64 c = 0; c < k; ++c)
            if (p[c] > threshold)
                rest += p[c], ++left;
            else
                p[c] = -__builtin_inf();
        if (left == count || left == 0) break;
        count = left;
        sum = rest;
    }
    for (i64 c = 0; c < k; ++c) p[c] = p[c] > threshold ? p[c] - threshold : 0.0;
}

// Project p onto the simplex, where the entry at the label is 1 - rest, given by rest. This keeps the relative accuracy
// of small entries off the label (for large C and separable classes, 1e-13 is common) and of the threshold: with the
// entry of the label, sum_{c active} (p_c - threshold) = 1 becomes threshold = (sum of the others - rest) / count.
inline void project_at_label(i64 k, i64 own, double rest, double* p) {
    double sum = -rest;
    for (i64 c = 0; c < k; ++c)
        if (c != own) sum += p[c];
    p[own] = 1.0 - rest;
    i64 count = k;
    for (;;) {
        const double threshold = sum / (double)count;
        if (!(threshold < 1.0 - rest)) return project(k, p);  // the entry of the label becomes 0
        double others = -rest;
        i64 left = 1;
        for (i64 c = 0; c < k; ++c)
            if (c != own && p[c] > threshold) others += p[c], ++left;
        if (left == count || left == 1) {
            double off = 0.0;
            for (i64 c = 0; c < k; ++c)
                if (c != own) off += p[c] = left > 1 && p[c] > threshold ? p[c] - threshold : 0.0;
            p[own] = off < 1.0 ? 1.0 - off : 0.0;
            return;
        }
        if (left > count) return project(k, p);  // a rounded threshold has decreased
        count = left;
        sum = others;
    }
}

// p at the scores z + t dz (dz may be null). out: sum of s l; sum of s times the derivative of l with respect to t; the
// proximal part sum s |p - p0|^2 / (2 sigma) of the first; and the Fenchel-Young slack sum s (max lead - sum p lead) of
// p.
inline void crammer_singer_step(i64 lo, i64 hi, const Classes& y, const double* z, const double* dz, double t,
                                const double* p0, double sigma, double* p, double* out) {
    const i64 k = y.k, K = padded_classes(k);
    for (i64 i = lo; i < hi; ++i) {
        const double *zi = z + i * K, *di = dz ? dz + i * K : nullptr, *before = p0 + i * K;
        const double s = y.weight ? y.weight[i] : 1.0;
        const i64 own = y.label[i];
        double* pi = p + i * K;
        const double mine = zi[own], my_move = di ? di[own] : 0.0;
        const auto lead = [&](i64 c) {
            return c == own ? 0.0 : 1.0 + ((zi[c] - mine) + (di ? t * (di[c] - my_move) : 0.0));
        };
        if (di)
            for (i64 c = 0; c < k; ++c) pi[c] = before[c] + sigma * (1.0 + ((zi[c] - mine) + t * (di[c] - my_move)));
        else
            for (i64 c = 0; c < k; ++c) pi[c] = before[c] + sigma * (1.0 + (zi[c] - mine));
        for (i64 c = k; c < K; ++c) pi[c] = 0.0;
        double rest = 0.0;
        for (i64 c = 0; c < k; ++c) rest += c == own ? 0.0 : before[c];
        project_at_label(k, own, rest, pi);
        double value = 0.0, slope = 0.0, moved = 0.0, top = 0.0, away = 0.0;
        for (i64 c = 0; c < k; ++c) {
            const double change = c == own ? 0.0 : pi[c] - before[c];
            const double l = lead(c);
            away += change;
            moved += change * change;
            top = l > top ? l : top;
            value += pi[c] * l;
            if (di) slope += pi[c] * (di[c] - my_move);
        }
        moved = (moved + away * away) * (0.5 / sigma);
        out[0] += s * (value - moved);
        out[1] += s * slope;
        out[2] += s * moved;
        out[3] += s * (top - value);
    }
}

// Dual coordinate ascent over the buckets order[k0 .. k1): maximise over the p of one row after the other, and update
// W (d + 1, K) = (V/lam; b0), V = sum s x (onehot(y) - p)'. The intercepts are handled by an augmented Lagrangian,
// b = b0 + stiffness e with e_c = sum s (onehot(y) - p)_c. A change of p changes the scores of its row by
// -s (|x|^2/lam + stiffness) times that change, so the maximiser is a projection. state: e [K], then the sum of s *
// slack. Keerthi, Sundararajan, Chang, Hsieh, Lin 2008.
template <class R>
void crammer_singer_ascend(const R& X, i64 k0, i64 k1, const Classes& y, const CdJob& job, const double* norms,
                           double* p, double* W, double* state, double* scratch) {
    const i64 k = y.k, K = padded_classes(k);
    double *lead = scratch, *moved = scratch + K, *change = scratch + 2 * K;
    for (i64 at = k0; at < k1; ++at) {
        const i64 first = job.order[at] * job.bucket, last = min64(first + job.bucket, X.n);
        for (i64 i = first; i < last; ++i) {
            const double s = y.weight ? y.weight[i] : 1.0, stiff = s * (norms[i] / job.lam + job.stiffness);
            if (s == 0.0) continue;
            const i64 own = y.label[i];
            double* pi = p + i * K;
            X.dots_k(i, 1, W, K, lead);
            const double mine = lead[own] + job.stiffness * state[own], sigma = stiff > 0.0 ? 1.0 / stiff : 1e100;
            double top = 0.0, gain = 0.0, rest = 0.0;
            for (i64 c = 0; c < k; ++c) {
                rest += c == own ? 0.0 : pi[c];
                lead[c] = c == own ? 0.0 : 1.0 + (lead[c] + job.stiffness * state[c] - mine);
                moved[c] = pi[c] + sigma * lead[c];
                top = lead[c] > top ? lead[c] : top;
                gain += pi[c] * lead[c];
            }
            state[K] += s * (top - gain);
            project_at_label(k, own, rest, moved);
            double sum = 0.0, largest = 0.0;
            for (i64 c = 0; c < K; ++c) change[c] = 0.0;
            for (i64 c = 0; c < k; ++c) {
                if (c != own) sum += change[c] = s * (pi[c] - moved[c]);
                largest = __builtin_fabs(change[c]) > largest ? __builtin_fabs(change[c]) : largest;
                pi[c] = moved[c];
            }
            if (largest == 0.0) continue;
            change[own] = -sum;
            for (i64 c = 0; c < k; ++c) {
                state[c] += change[c];
                change[c] /= job.lam;
            }
            X.add_k(i, 1, change, K, W);
        }
    }
}

// out (d + 1, K) += sum s (x, 1) (p - onehot(y))'
template <class R>
void crammer_singer_gradient(const R& X, i64 lo, i64 hi, const Classes& y, const double* p, double* out,
                             double* scratch) {
    const i64 k = y.k, K = padded_classes(k);
    const i64 most = min64(X.chunk(), softmax_rows(R::dense, X.d, k));
    double* totals = out + X.d * K;
    for (i64 r = lo; r < hi; r += most) {
        const int nr = (int)min64(most, hi - r);
        for (int i = 0; i < nr; ++i) {
            const double s = y.weight ? y.weight[r + i] : 1.0;
            const i64 own = y.label[r + i];
            double sum = 0.0;
            double* a = scratch + i * K;
            for (i64 c = 0; c < K; ++c) a[c] = 0.0;
            for (i64 c = 0; c < k; ++c)
                if (c != own) sum += a[c] = s * p[(r + i) * K + c];
            a[own] = -sum;
            for (i64 c = 0; c < k; ++c) totals[c] += a[c];
        }
        X.add_k(r, nr, scratch, K, out);
    }
}

// The sums of a certificate, in the layout of softmax/closing.hpp, with minus the conjugate, the sum of p off the
// label, in place of the entropy. The dual point U = onehot(y) - p is given, (n, k). A row outside the simplex by more
// than rounding is replaced by the slope at W.
template <class R>
void crammer_singer_closing(const R& X, i64 lo, i64 hi, const Classes& y, const double* W, const double* bound,
                            const double* dual, double* out, double* scratch) {
    const i64 K = padded_classes(y.k);
    double* mass = out + 7;
    double* V = mass + K;
    double* features = V + (X.d + 1) * K;
    SoftmaxChunk c(X, y, V, scratch);
    const double score_error = (double)(X.d + 6) * 0x1p-53, most = 1.0 + 8.0 * (double)y.k * 0x1p-53;
    const Lengths sizes(X.d, y.k);
    double scores[kRoom], reach[kRoom], norms2[kRoom];
    c.products.take(0, W);
    for (i64 r = lo; r < hi; r += c.step()) {
        c.open(r, (int)min64(c.step(), hi - r));
        c.scores(0, 2);
        X.scores_and_sizes(r, c.nr, bound, scores, reach, norms2);
        for (i64 a = 0; a < y.k; ++a)
            for (int i = c.nr; i < c.np; ++i) c.plane(0, a)[i] = 0.0;
        for (int i = 0; i < c.nr; ++i) {
            const double s = c.weight[i], far = reach[i], *u = dual + (r + i) * y.k;
            const i64 own = y.label[r + i];
            i64 best = own == 0 ? 1 : 0;
            double rest = 0.0, least = 0.0, squares = 0.0;
            for (i64 a = 0; a < y.k; ++a) {
                if (a == own) continue;
                if (c.plane(2, a)[i] > c.plane(2, best)[i]) best = a;
                rest -= u[a];
                least = -u[a] < least ? -u[a] : least;
            }
            const double lead = 1.0 + (c.plane(2, best)[i] - c.plane(2, own)[i]);
            const bool inside = least >= 0.0 && rest <= most;
            for (i64 a = 0; a < y.k; ++a)
                c.plane(0, a)[i] = a == own ? 0.0 : inside ? u[a] : a == best && lead > 0.0 ? -1.0 : 0.0;
            if (!inside) rest = lead > 0.0 ? 1.0 : 0.0, out[6] += 1.0;
            rest = rest < 1.0 ? rest : 1.0;
            for (i64 a = 0; a < y.k; ++a) squares += c.plane(0, a)[i] * c.plane(0, a)[i];
            const double loss = lead <= 0.0 ? 0.0 : lead;  // NaN remains NaN
            const double slope = lead > -2.0 * score_error * far ? 1.0 : 0.0;
            out[0] += s * loss;
            out[1] += s * rest;
            out[2] += 2.0 * s * far * (rest > slope ? rest : slope);
            out[3] += s * (loss + rest);
            sizes.add(s, norms2[i], squares + rest * rest, out + 4, out + 5);
            mass[own] += s;
            if (s != 0.0) X.axpy(r + i, s, features + own * X.d);
        }
        c.weigh_zero_sum(0);
        c.add(0);
    }
    c.close();
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
