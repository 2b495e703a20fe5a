// Dual coordinate ascent over buckets of rows, with an unpenalised intercept by an augmented Lagrangian.
//
// Minimises over u, one row at a time,
//   F(u) = sum s (l*(-u) + u offset) + |v|^2/(2 lam) + b0 e + (stiffness/2) e^2,  v = sum s sign u x, e = sum s sign u.
// With w = v/lam and b = b0 + stiffness e, the derivative with respect to u_i is s_i (margin at (w, b) - l*'(-u_i)),
// and a unit change of u_i changes the margin of its row by q = s (|x|^2/lam + stiffness). The new margin m and the new
// u = -l'(m) therefore solve   m = c + q u,  c = (old margin) - q (old u):  a proximal step of the loss.
//
// Rows whose mean is far from 0 couple w and b; they are then centred. Replacing x by x - c changes nothing where e =
// 0, but a change of w no longer shifts all scores. The rows themselves are not modified: w' = sum s sign u x / lam is
// stored, and (x - c).w = x.w' - (e (x.c - |c|^2) + f)/lam with w = w' - (e/lam) c, f = sum s sign u x.c.
//
// Shrinking: a row whose u is at a bound of its interval, with a slope that points far outside, is unlikely to change
// again. Such rows are removed from the list, so that an epoch costs only the remaining rows. They are checked again
// before the end.
//
// Hsieh et al. 2008 (the method, and shrinking), Yu, Huang, Lin 2011 (logistic), Shalev-Shwartz, Zhang 2013 (rates).
// dual/ascent.cpp updates the multiplier b0 of the intercept between epochs.
#pragma once
#include "sums/sweep.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

// The new u of a row; approximately the Fenchel-Young slack l(m) + l*(-u) + u m of the old u at its margin
// (the slacks of all rows sum to the duality gap); and the derivative of the dual with respect to u, for losses whose u
// is bounded.
struct Move {
    double u, slack, slope;
};

// exp(-m) for one m >= 0: the argument reduction of core/simd.hpp, with the series summed in pairs for a short
// dependency chain.
inline double decay(double m) {
    const double x = m < 708.0 ? -m : -708.0;
    const double shifted = x * kLog2e + kMagic, k = shifted - kMagic;
    const double r = (x - k * kLn2Hi) - k * kLn2Lo, r2 = r * r, r4 = r2 * r2;
    const double a = (1.0 + r) + r2 * (0.5 + r * (1.0 / 6.0));
    const double b = (1.0 / 24.0 + r * (1.0 / 120.0)) + r2 * (1.0 / 720.0 + r * (1.0 / 5040.0));
    const double c = (1.0 / 40320.0 + r * (1.0 / 362880.0)) + r2 * (1.0 / 3628800.0 + r * (1.0 / 39916800.0));
    const double d = 1.0 / 479001600.0 + r * (1.0 / 6227020800.0);
    std::int64_t bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 1023) << 52;
    double scale;
    std::memcpy(&scale, &bits, sizeof scale);
    return ((a + r4 * b) + r4 * r4 * (c + r4 * d)) * scale;
}

// log x of a normal number x > 0: the argument reduction of core/simd.hpp, with the series summed in pairs.
inline double logarithm(double x) {
    std::int64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    const std::int64_t k = (bits - (std::int64_t)0x3fe6a09e667f3bcd) >> 52;
    bits -= k << 52;
    double f;
    std::memcpy(&f, &bits, sizeof f);
    const double s = (f - 1.0) / (f + 1.0), q = s * s, q2 = q * q, q4 = q2 * q2;
    const double a = (2.0 + q * (2.0 / 3.0)) + q2 * (2.0 / 5.0 + q * (2.0 / 7.0));
    const double b = (2.0 / 9.0 + q * (2.0 / 11.0)) + q2 * (2.0 / 13.0 + q * (2.0 / 15.0));
    const double c = (2.0 / 17.0 + q * (2.0 / 19.0)) + q2 * (2.0 / 21.0);
    return (double)k * kLn2Hi + ((double)k * kLn2Lo + s * (a + q4 * (b + q4 * c)));
}

// Coordinate step for the logistic loss: the root of g(m) = m - c - q p(m), p = 1/(1 + e^m), by Newton's method. g(-m)
// is -g with c replaced by -c - q, so the root can be assumed >= 0. There g is concave and increasing: from the left,
// Newton's method increases monotonically to the root; from the right, the next iterate lies on the left, and the lower
// bound max(0, c) of the root keeps it close. A small step gets its second-order term and is the last: the error is of
// the order of its cube.
//
// Rows near their solution, which are most rows most of the time, are updated in u instead: m = t(u) = log((1-u)/u),
// and the second-order expansion of the root of  margin + q (x - u) - t(x)  around x = u needs the margin only in a
// difference. The expensive operations, a logarithm and three divisions, do not depend on the margin and overlap with
// the product x.w.
struct LogisticMove {
    static constexpr double kSmall = 0.05, kNear = 0.03;  // step sizes in m; in u relative to u (1 - u)
    static constexpr bool rests = false;
    struct Ready {
        double t, scale, bend, room, v;
    };
    static Ready ready(double q, double u) {
        const double r = 1.0 - u, v = u * r;
        if (!(v > 1e-12)) return {0.0, 0.0, 0.0, -1.0, 0.0};
        const double w = 1.0 / v, scale = 1.0 / (q + w);
        return {logarithm(r / u), scale, 0.5 * scale * (r - u) * w * w, kNear * v, v};
    }
    static Move at(double margin, double u, double q, const Ready& near) {
        const double off = near.t - margin, step = off * near.scale;
        if (__builtin_fabs(step) <= near.room)
            return {u + step * (1.0 + near.bend * step), 0.5 * off * off * near.v, 0.0};
        return from_afar(margin, u, q);
    }
    static Move from_afar(double margin, double u, double q) {
        double c = margin - q * u;
        const bool flip = c + 0.5 * q < 0.0;
        if (flip) {
            c = -c - q;
            margin = -margin;
            u = 1.0 - u;
        }
        const double floor = c > 0.0 ? c : 0.0, ceiling = c + 0.5 * q;
        double m = margin < floor ? floor : margin > ceiling ? ceiling : margin;
        double slack = 0.0;
        for (int i = 0;; ++i) {
            const double e = decay(m), one = 1.0 + e, square = one * one, h = q * e;
            const double r = 1.0 / one, p = e * r, slope = 1.0 / (square + h);
            const double step = (h * one - (m - c) * square) * slope;
            if (i == 0) {
                const double near = 0.5 * (u - p) * (u - p) / (p * r), far = e + u * m;
                slack = near < far ? near : far;
            }
            if (__builtin_fabs(step) <= kSmall || i == 60) {
                const double bend = 0.5 * (r - p), s = step + bend * (h * slope) * step * step;
                const double moved = p - p * r * s * (1.0 - bend * s);
                return {flip ? 1.0 - moved : moved, slack, 0.0};
            }
            m = m + step > floor ? m + step : floor;
        }
    }
};

// Coordinate step for losses whose conjugate is quadratic on an interval: l*(-u) = ridge/2 u^2 - kink u on [low, high].
struct Parabola {
    double kink, ridge, low, high;
    double inverse = 1.0 / ridge;  // infinite for a loss with a kink, where clip() selects the bound

    static constexpr bool rests = true;
    double clip(double u) const { return u > low ? (u < high ? u : high) : low; }
    double ready(double q, double) const { return 1.0 / (ridge + q); }  // computed before the margin is known
    Move at(double margin, double u, double, double scale) const {
        const double r = kink - margin, p = clip(r * inverse), slope = r - ridge * u;
        return {clip(u + slope * scale), (p - u) * (r - 0.5 * ridge * (p + u)), slope};
    }
};
inline Parabola parabola(LossSpec spec) {
    const double inf = __builtin_inf(), kink = kink_of(spec), width = spec.shape.width;
    switch (spec.id) {
        case LossId::squared:
            return {kink, 0.5, -inf, inf};
        case LossId::squared_hinge:
            return {kink, 0.5, 0.0, inf};
        case LossId::huberised_hinge:
            return {kink, width, 0.0, 1.0};
        case LossId::huber:
            return {kink, 1.0, -width, width};
        case LossId::absolute:
            return {kink, 0.0, -1.0, 1.0};
        case LossId::hinge:
            return {kink, 0.0, 0.0, 1.0};
        default:
            return {kink, 0.0, 0.0, 1.0};  // perceptron
    }
}

// Prefetch a row before its visit: hardware prefetchers cannot follow the random order of the rows.
// Inlining is forced, because GCC considers a function that only prefetches free of side effects and removes its calls.
template <class V>
[[gnu::always_inline]] inline void fetch(const V* from, i64 count) {
    for (i64 p = 0; p < count; p += 64 / (i64)sizeof(V)) __builtin_prefetch(from + p);
}
template <class T>
[[gnu::always_inline]] inline void fetch_row(const DenseRows<T>& X, i64 i) {
    fetch(X.row(i), min64(X.d, 512));
}
template <class T>
[[gnu::always_inline]] inline void fetch_row(const CsrRows<T>& X, i64 i) {
    const i64 p = X.start[i], count = min64(X.start[i + 1] - p, 256);
    fetch(X.x + p, count);
    fetch(X.index + p, count);
}

// The update of a row once its product with w is known, and the sums over an epoch.
// theta = (w, b0). z and b store the score x.w of each row and the intercept just after its update, where u is minus
// the slope. A row at a bound with |slope| > job.far is removed: its entry i of the list becomes ~i.
// job.along: x.c of each row, null without a centre; job.centre: |c|^2; norms and scores are those of x - c.
// state: e (updated), sum of s * slack (added to), largest |slope| of a row that changed (maximum), f (updated).
template <class L>
struct Walk {
    const Targets t;
    const L loss;
    const CdJob job;
    const double* const norms;
    double *const u, *const z, *const b;
    const double b0, inverse;
    double e, f, slack, most;

    // Update row i of weight s, entry j of the list; return the multiple of the row to add to w. product() computes x.w
    // and is called last, so that the independent operations overlap with it.
    template <class F>
    [[gnu::always_inline]] double move(i64 j, i64 i, double s, const F& product) {
        const double q = s * (norms[i] * inverse + job.stiffness), before = u[i];
        const auto ready = loss.ready(q, before);
        const double along = job.along ? job.along[i] : 0.0;
        const double score = product() - inverse * (e * (along - job.centre) + f);
        const double margin = t.sign[i] * (score + b0 + job.stiffness * e) + (t.offset ? t.offset[i] : 0.0);
        const Move move = loss.at(margin, before, q, ready);
        const double mass = s * t.sign[i] * (move.u - before);
        slack += s * move.slack;
        z[i] = score + mass * inverse * norms[i];
        b[i] = b0 + job.stiffness * (e + mass);
        const double size = __builtin_fabs(move.slope);
        if (mass == 0.0) {
            if (L::rests && size > job.far) job.rows[j] = ~i;
            return 0.0;
        }
        if (L::rests && size > most) most = size;
        u[i] = move.u;
        e += mass;
        f += mass * along;
        return mass * inverse;
    }
    void tell(double* state) const {
        state[0] = e;
        state[1] += slack;
        state[2] = most;
        state[3] = f;
    }
};

// Visit the buckets order[k0 .. k1), each of job.bucket consecutive entries of the list of rows: call visit(j, i, s)
// for each row i of weight s > 0, and fetch(i) for rows that will be visited soon.
template <class Fetch, class Visit>
[[gnu::always_inline]] inline void in_order(i64 k0, i64 k1, const CdJob& job, const double* weight, const Fetch& fetch,
                                            const Visit& visit) {
    const auto row = [&](i64 j) { return job.rows ? job.rows[j] : j; };
    for (i64 k = k0; k < k1; ++k) {
        const i64 first = job.order[k] * job.bucket, last = min64(first + job.bucket, job.count);
        const i64 soon = k + (job.bucket > 1 ? 1 : 3);
        const i64 ahead = soon < k1 ? (job.order[soon] - job.order[k]) * job.bucket : 0;
        for (i64 j = first; j < last; ++j) {
            if (const i64 next = j + ahead; ahead && next < job.count && row(next) >= 0) fetch(row(next));
            const i64 i = row(j);
            if (i < 0) continue;
            const double s = weight ? weight[i] : 1.0;
            if (s != 0.0) visit(j, i, s);
        }
    }
}

template <class R, class L>
void ascend(const R& X, i64 k0, i64 k1, const Walk<L>& from, double* theta, double* state) {
    Walk<L> walk = from;  // a local copy stays in registers
    const auto fetch = [&](i64 i) {
        __builtin_prefetch(walk.u + i);
        __builtin_prefetch(walk.norms + i);
        __builtin_prefetch(walk.t.sign + i);
        if (walk.job.along) __builtin_prefetch(walk.job.along + i);
        fetch_row(X, i);
    };
    in_order(k0, k1, walk.job, walk.t.weight, fetch, [&](i64 j, i64 i, double s) {
        const double step = walk.move(j, i, s, [&] { return X.dot_row(i, theta); });
        if (step != 0.0) X.axpy(i, step, theta);
    });
    walk.tell(state);
}

constexpr i64 kLongRow = 400, kVeryLongRow = 2048;  // columns

// Process dense rows that do not fit in the L1 cache together with w, four at a time. Their products with w and with
// each other are computed in one loop over the columns; then the rows are updated in turn, as if w had been updated in
// between, and w is updated once for all four. Very long rows are split in two halves, one of which the helper thread
// may process.
template <class T, class L>
void ascend_by_fours(const DenseRows<T>& X, i64 k0, i64 k1, const Walk<L>& from, double* theta, double* state) {
    Walk<L> walk = from;
    constexpr int kRows = 4;
    i64 entry[kRows], rows[kRows];
    double weight[kRows];
    int count = 0;
    const TwoParts columns{X.d, X.d >= kVeryLongRow ? X.d / 2 / VL * VL : X.d, walk.job.helper};
    const auto all_move = [&] {
        double sums[2][kRows + kRows * kRows] = {}, steps[kRows];
        columns.each([&](i64 lo, i64 hi, int part) { X.products(rows, count, theta, lo, hi, sums[part]); });
        const auto sum = [&](int at) { return sums[0][at] + sums[1][at]; };
        for (int a = 0; a < count; ++a) {
            double product = sum(a);
            for (int p = 0; p < a; ++p) product += steps[p] * sum(kRows + kRows * p + a);
            steps[a] = walk.move(entry[a], rows[a], weight[a], [product] { return product; });
        }
        columns.each([&](i64 lo, i64 hi, int) { X.axpy_some(rows, count, steps, lo, hi, theta); });
        count = 0;
    };
    in_order(
        k0, k1, walk.job, walk.t.weight, [](i64) {},
        [&](i64 j, i64 i, double s) {
            entry[count] = j;
            weight[count] = s;
            rows[count++] = i;
            if (count == kRows) all_move();
        });
    if (count) all_move();
    walk.tell(state);
}

template <class R, class L>
void walk_over(const R& X, i64 k0, i64 k1, const Targets& t, const L& loss, const CdJob& job, const double* norms,
               double* u, double* z, double* b, double* theta, double* state) {
    const Walk<L> from{t, loss, job, norms, u, z, b, theta[X.d], 1.0 / job.lam, state[0], state[3], 0.0, state[2]};
    if constexpr (R::dense)
        if (X.d >= kLongRow) return ascend_by_fours(X, k0, k1, from, theta, state);
    ascend(X, k0, k1, from, theta, state);
}

// Add a x_i to `out` and return |x_i|^2.
template <class T>
double length_and_add(const DenseRows<T>& X, i64 i, double a, double* out) {
    X.axpy(i, a, out);
    return X.norm2(i);
}
template <class T>
double length_and_add(const CsrRows<T>& X, i64 i, double a, double* out) {
    double s = 0, t = 0;
    i64 p = X.start[i];
    const i64 end = X.start[i + 1];
    for (; p + 2 <= end; p += 2) {
        const double x = (double)X.x[p], y = (double)X.x[p + 1];
        out[X.index[p]] += a * x;
        out[X.index[p + 1]] += a * y;
        s += x * x;
        t += y * y;
    }
    if (p < end) {
        const double x = (double)X.x[p];
        out[X.index[p]] += a * x;
        s += x * x;
    }
    return s + t;
}
// |x|^2 of each row, and the sums of s x over the rows of each sign (out: 2 d numbers, added to).
template <class R>
void class_sums(const R& X, i64 lo, i64 hi, const Targets& t, double* norms, double* out) {
    for (i64 i = lo; i < hi; ++i)
        norms[i] = length_and_add(X, i, t.weight ? t.weight[i] : 1.0, t.sign[i] > 0.0 ? out : out + X.d);
}

// x.a and x.b of each row, in one read. pairs: a and b interleaved, for sparse rows, which gather both at once.
template <class T>
void two_scores(const DenseRows<T>& X, i64 lo, i64 hi, const double* a, const double* b, const double*, double* za,
                double* zb) {
    for (i64 i = lo; i < hi; ++i) {
        za[i] = X.dot_row(i, a);
        zb[i] = X.dot_row(i, b);
    }
}
template <class T>
void two_scores(const CsrRows<T>& X, i64 lo, i64 hi, const double*, const double*, const double* pairs, double* za,
                double* zb) {
    for (i64 i = lo; i < hi; ++i) {
        double sums[4] = {};
        i64 p = X.start[i];
        const i64 end = X.start[i + 1];
        const auto add = [&](i64 at, double* sum) {
            const double x = (double)X.x[at], *pair = pairs + 2 * (i64)X.index[at];
            sum[0] += x * pair[0];
            sum[1] += x * pair[1];
        };
        for (; p + 2 <= end; p += 2) add(p, sums), add(p + 1, sums + 2);
        if (p < end) add(p, sums);
        za[i] = sums[0] + sums[2];
        zb[i] = sums[1] + sums[3];
    }
}

// Products of listed rows with v, and v += sum a_k x over listed rows.
constexpr i64 kAhead = 3;  // rows to prefetch: hardware prefetchers cannot follow the list

template <class R>
void list_dots(const R& X, const i64* list, i64 count, const double* v, double* out) {
    for (i64 k = 0; k < count; ++k) {
        if (k + kAhead < count) fetch_row(X, list[k + kAhead]);
        out[k] = X.dot_row(list[k], v);
    }
}
template <class R>
void list_add(const R& X, const i64* list, i64 count, const double* a, double* v) {
    for (i64 k = 0; k < count; ++k) {
        if (k + kAhead < count) fetch_row(X, list[k + kAhead]);
        if (a[k] != 0.0) X.axpy(list[k], a[k], v);
    }
}

// Remove the entries marked by ~i from the list, keeping its order; return the number of the others.
inline i64 remaining(i64 count, i64* rows) {
    i64 kept = 0;
    for (i64 j = 0; j < count; ++j) {
        const i64 i = rows[j];
        rows[kept] = i;
        kept += i >= 0;
    }
    return kept;
}

template <class R>
void dual_cd(const R& X, i64 k0, i64 k1, const Targets& t, LossSpec spec, const CdJob& job, const double* norms,
             double* u, double* z, double* b, double* theta, double* state) {
    if (spec.id == LossId::logistic)
        walk_over(X, k0, k1, t, LogisticMove{}, job, norms, u, z, b, theta, state);
    else
        walk_over(X, k0, k1, t, parabola(spec), job, norms, u, z, b, theta, state);
}

// Fisher-Yates shuffle with the splitmix64 generator: the same order on every machine.
inline void shuffle(i64 count, std::uint64_t seed, i64* order) {
    for (i64 k = count - 1; k > 0; --k) {
        std::uint64_t x = seed += 0x9e3779b97f4a7c15u;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
        x ^= x >> 31;
        const i64 j = (i64)(((x >> 32) * (std::uint64_t)(k + 1)) >> 32);
        const i64 kept = order[k];
        order[k] = order[j];
        order[j] = kept;
    }
}

template <class T>
inline i64 length(const DenseRows<T>& X, i64) {
    return X.d;
}
template <class T>
inline i64 length(const CsrRows<T>& X, i64 i) {
    return X.start[i + 1] - X.start[i];
}

// The order of an epoch over the entries 0 .. count-1 of the list (or of all rows). With short rows, the processor
// spends a third of its time on mispredicted loop ends; within each stretch of the shuffled order, rows of equal length
// are therefore grouped. A stretch is a random sample of the rows and much shorter than the list: longer stretches
// would make the order similar in every epoch, which costs epochs.
template <class R>
void arrange(const R& X, i64 count, const i64* list, std::uint64_t seed, i64* order, i64* spare) {
    constexpr i64 kLengths = 64;
    const i64 stretch = min64(count / 40, 256);
    shuffle(count, seed, order);
    if (R::dense || X.n_entries() > kLengths * X.n || stretch < 16) return;
    const auto key = [&](i64 j) { return min64(length(X, list ? list[j] : j), kLengths - 1); };
    for (i64 lo = 0; lo < count; lo += stretch) {
        const i64 size = min64(stretch, count - lo);
        i64 at[kLengths + 1] = {};
        for (i64 k = 0; k < size; ++k) {  // pack the index and its key into one number
            const i64 j = order[lo + k], length = key(j);
            spare[k] = kLengths * j + length;
            ++at[length + 1];
        }
        for (i64 v = 0; v < kLengths; ++v) at[v + 1] += at[v];
        for (i64 k = 0; k < size; ++k) order[lo + at[spare[k] % kLengths]++] = spare[k] / kLengths;
    }
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
