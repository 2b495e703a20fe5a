// The optimal intercept for given scores, and feasible dual variables for it; neither reads X.
//
// The loss sum s l(sign (z + b) + offset) is convex in b. Losses with curvature: Newton's method, safeguarded by a
// bracket. Losses with a kink: each row has one break point, where its slope jumps by s times the width of its interval
// of u, and the optimal b is a weighted quantile of the break points.
//
// With an intercept, a dual point is feasible only if e = sum s sign u = 0. The u returned by ascent are changed as a
// shift of b would change them. Scaling down the u of one class would also make e = 0, but loses much of the dual value
// when many u are at a bound.
#pragma once
#include "core/interrupt.hpp"
#include "interior/passes.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

// Weighted quantile by partitioning: the smallest t among x for which the weights of all x <= t sum to at least target.
// Permutes x and weight. A target above the total gives the largest x of positive weight; a NaN chosen as pivot is
// returned.
inline double quantile(i64 n, double* x, double* weight, double target) {
    i64 lo = 0, hi = n;
    const auto swap = [&](i64 a, i64 b) {
        const double kx = x[a], kw = weight[a];
        x[a] = x[b], weight[a] = weight[b];
        x[b] = kx, weight[b] = kw;
    };
    while (hi - lo > 1) {
        const double a = x[lo], b = x[lo + (hi - lo) / 2], c = x[hi - 1];
        const double pivot = a < b ? (b < c ? b : a < c ? c : a) : (a < c ? a : b < c ? c : b);
        if (pivot != pivot) return pivot;
        i64 below = lo, equal = lo, above = hi;  // [lo, below) < pivot, [below, equal) = pivot, [above, hi) > pivot
        double low = 0, mid = 0;
        while (equal < above) {
            if (x[equal] < pivot) {
                low += weight[equal];
                swap(below++, equal++);
            } else if (x[equal] == pivot) {
                mid += weight[equal++];
            } else {
                swap(equal, --above);
            }
        }
        if (low >= target && below > lo) {
            hi = below;
        } else if (low + mid >= target || above == hi) {
            return pivot;
        } else {
            target -= low + mid;
            lo = above;
        }
    }
    return n > 0 ? x[lo] : 0.0;
}

// Add the sums of s l, s sign l' and s l'' at the scores z + b, which Newton's method for b needs.
inline void shifted_sums(i64 lo, i64 hi, const Targets& t, LossSpec spec, const double* z, double b, double* out) {
    const LossOps loss = ops(spec.id);
    Chunk c;
    for (i64 r = lo; r < hi; r += kMaxChunk) {
        const int nr = (int)min64(kMaxChunk, hi - r), np = padded(nr);
        for (int i = 0; i < nr; ++i) c.m[i] = z[r + i] + b;
        margins(c, t, r, nr);
        loss.at(np, spec.shape, c.m, c.value, c.slope, c.curvature);
        out[0] += weighted_total(c.value, c.weight, np);
        out[2] += weighted_total(c.curvature, c.weight, np);
        double sum = 0;
        for (int i = 0; i < nr; ++i) sum += c.weight[i] * t.sign[r + i] * c.slope[i];
        out[1] += sum;
    }
}

inline bool has_kink(LossId id) { return id == LossId::hinge || id == LossId::absolute || id == LossId::perceptron; }

constexpr i64 kFew = 48;  // number of break points for which the quantile is computed directly

struct BreakPoints {
    i64 n;
    Targets t;
    Box box;
    const double* z;

    double weight(i64 i) const { return t.weight ? t.weight[i] : 1.0; }
    double at(i64 i) const { return t.sign[i] * (box.kink - (t.offset ? t.offset[i] : 0.0)) - z[i]; }

    // Sum of the weights of the break points x <= at, and their number. x is padded with infinity to whole vectors.
    static double mass_up_to(i64 size, const double* x, const double* w, double at, i64* count) {
        vd mass{}, number{};
        for (i64 i = 0; i < size; i += VL) {
            const vi there = load(x + i) <= at;
            mass += select(there, load(w + i), vd{});
            number += select(there, splat(1.0), vd{});
        }
        *count = (i64)total(number);
        return total(mass);
    }

    // The optimal b: the smallest break point up to which the jumps sum to minus the slope at b = -inf. It is
    // bracketed, first within `reach` of the given b; once few break points remain in the bracket, their weighted
    // quantile is computed. Each trial is one pass over an array, which costs less than partitioning it. Other rows,
    // whose u is fixed, add `rest` to e. `room` is scratch of 4 n + 32 numbers.
    double best(double b, double reach, double rest, double* room) const {
        const i64 size = (n + VL - 1) / VL * VL;
        double *x = room, *w = room + size, *some = w + size, *heavy = some + n, target = 0;
        for (i64 i = 0; i < n; ++i) x[i] = at(i);
        for (i64 i = 0; i < n; ++i) w[i] = weight(i) * box.width();
        for (i64 i = n; i < size; ++i) x[i] = __builtin_inf(), w[i] = 0.0;
        vd slopes{};
        for (i64 i = 0; i < n; i += VL) {
            const vd sign = load_some(t.sign + i, (int)min64(VL, n - i), 0.0);
            slopes += load(w + i) * select(sign > 0.0, splat(box.hi / box.width()), splat(-box.lo / box.width()));
        }
        target = total(slopes) + rest;
        double low = -__builtin_inf(), high = __builtin_inf(), below = 0, above = 0;
        i64 first = 0, last = n, count = 0;  // number of break points up to low and up to high
        const auto look = [&](double at) {
            poll();
            const double mass = mass_up_to(size, x, w, at, &count);
            if (mass < target)
                low = at, below = mass, first = count;
            else
                high = at, above = mass, last = count;
        };
        for (reach = reach < 1.0 ? reach : 1.0; last - first > kFew && reach < 1e100; reach = 8.0 * reach + 1e-12) {
            if (!(low > -__builtin_inf())) look(b - reach);
            if (!(high < __builtin_inf())) look(b + reach);
            if (low > -__builtin_inf() && high < __builtin_inf()) break;
        }
        for (int trial = 0; trial < 40 && last - first > kFew && low < high; ++trial) {
            // alternate interpolation and bisection, so that neither clusters nor gaps slow the search down
            const double share = trial % 3 < 2 ? (target - below) / (above - below) : 0.5;
            const double at = low + (high - low) * (share > 0.02 ? (share < 0.98 ? share : 0.98) : 0.02);
            if (!(at > low && at < high)) break;
            look(at);
        }
        count = 0;
        for (i64 i = 0; i < n; ++i) {
            some[count] = x[i];
            heavy[count] = w[i];
            count += x[i] > low && x[i] <= high;
        }
        return quantile(count, some, heavy, target - below);
    }

    // Change u to satisfy e = 0 at the smallest loss of dual value. Free rows are at their kink: changing their u costs
    // nothing to first order and little to second order if all of them share the change. If their intervals do not
    // suffice, the other rows follow: lowering e by one unit at row i changes the dual by (b - break point of i) in
    // either class, so they are changed in the order of their break points.
    void balance(double* u, double* room) const {
        double total = 0;
        for (i64 i = 0; i < n; ++i) total += weight(i);
        for (int attempt = 0; attempt < 4; ++attempt) {  // repeat to remove rounding errors
            poll();
            double e = 0;
            for (i64 i = 0; i < n; ++i) e += weight(i) * t.sign[i] * u[i];
            const bool over = e > 0.0;
            const double size = __builtin_fabs(e);
            if (!(size > 1e-14 * total)) return;  // the rest is rounding error; scaling a class removes it
            const auto goal = [&](i64 i) { return (t.sign[i] > 0.0) != over ? box.hi : box.lo; };
            const auto space = [&](i64 i) { return weight(i) * __builtin_fabs(goal(i) - u[i]); };
            const auto key = [&](i64 i) { return over ? at(i) : -at(i); };
            const auto inside = [&](i64 i) { return u[i] > box.lo && u[i] < box.hi; };
            double given = 0, wanted = size, last = __builtin_inf();
            for (i64 i = 0; i < n; ++i) given += inside(i) ? space(i) : 0.0;
            const bool all = given <= size || attempt > 1;
            if (all) {
                for (i64 i = 0; i < n; ++i) room[i] = key(i), room[n + i] = space(i);
                last = quantile(n, room, room + n, size);
                given = 0;
                for (i64 i = 0; i < n; ++i) {
                    if (key(i) < last) {
                        wanted -= space(i);
                        u[i] = goal(i);
                    } else if (key(i) == last) {
                        given += space(i);
                    }
                }
            }
            if (!(given > 0.0) || !(wanted > 0.0)) continue;
            const double share = wanted < given ? wanted / given : 1.0;
            for (i64 i = 0; i < n; ++i)
                if (all ? key(i) == last : inside(i)) {
                    const double moved = u[i] + share * (goal(i) - u[i]);
                    u[i] = moved > box.lo ? (moved < box.hi ? moved : box.hi) : box.lo;
                }
        }
    }
};

// Newton's method for b at the scores z, until a step is below fine (1 + |b|). Returns b, and sum s l at a point close
// to it. Other rows, whose u is fixed, add `rest` to e.
inline Settled best_smooth(i64 n, const Targets& t, LossSpec spec, bool free, const double* z, double b, double fine,
                           double rest = 0.0) {
    double low = -__builtin_inf(), high = __builtin_inf(), value = 0;
    for (int i = 0; i < 60; ++i) {
        poll();
        double sums[3] = {};
        shifted_sums(0, n, t, spec, z, b, sums);
        value = sums[0];
        const double slope = sums[1] - rest, curvature = sums[2];
        if (!free || slope == 0.0 || !(slope - slope == 0.0)) break;
        (slope > 0.0 ? high : low) = b;
        // Far from the optimum there is hardly any curvature, so the Newton step is clipped.
        const double far = 4.0 + 2.0 * __builtin_fabs(b), away = slope > 0.0 ? -far : far;
        double move = curvature > 0.0 ? -slope / curvature : away;
        move = move < -far ? -far : move > far ? far : move;
        b = low <= b + move && b + move <= high ? b + move : 0.5 * (low + high);
        if (__builtin_fabs(move) <= fine * (1.0 + __builtin_fabs(b))) break;
    }
    return {b, value};
}

// The optimal intercept for the scores z. `room` is scratch of 4 n + 32 numbers.
inline Settled best_intercept(i64 n, const Targets& t, LossSpec spec, bool free, const double* z, double b,
                              double reach, double fine, double* room, double rest = 0.0) {
    if (!has_kink(spec.id)) return best_smooth(n, t, spec, free, z, b, fine, rest);
    if (free && n > 0) b = BreakPoints{n, t, Box(spec), z}.best(b, reach, rest, room);
    double sums[3] = {};
    shifted_sums(0, n, t, spec, z, b, sums);
    return {b, sums[0]};
}

// The optimal intercept if only the u of the listed rows can change; e is the sum of s sign u over all rows. Returns
// the loss of the listed rows. `room` is scratch of 8 count + 32 numbers.
inline Settled best_among(const i64* rows, i64 count, const Targets& t, LossSpec spec, bool free, const double* z,
                          const double* u, double e, double b, double reach, double fine, double* room) {
    double *score = room, *sign = room + count, *offset = room + 2 * count, *weight = room + 3 * count, rest = e;
    for (i64 k = 0; k < count; ++k) {
        const i64 i = rows[k];
        score[k] = z[i];
        sign[k] = t.sign[i];
        offset[k] = t.offset ? t.offset[i] : 0.0;
        weight[k] = t.weight ? t.weight[i] : 1.0;
        rest -= weight[k] * sign[k] * u[i];
    }
    return best_intercept(count, {sign, offset, weight}, spec, free, score, b, reach, fine, room + 4 * count, rest);
}

// Change u to satisfy e = 0. For losses with curvature, u_i is minus the slope at z_i + seen_i; find the shift b for
// which u_i = -l' at z_i + seen_i + b satisfies e = 0.
inline void balance(i64 n, const Targets& t, LossSpec spec, const double* z, const double* seen, double* u,
                    double* room) {
    if (has_kink(spec.id)) return BreakPoints{n, t, Box(spec), z}.balance(u, room);
    for (i64 i = 0; i < n; ++i) room[i] = z[i] + seen[i];
    const double b = best_smooth(n, t, spec, true, room, 0.0, 1e-9).b;
    const LossOps loss = ops(spec.id);
    Chunk c;
    for (i64 r = 0; r < n; r += kMaxChunk) {
        const int nr = (int)min64(kMaxChunk, n - r);
        for (int i = 0; i < nr; ++i) c.m[i] = room[r + i] + b;
        margins(c, t, r, nr);
        loss.at(padded(nr), spec.shape, c.m, c.value, c.slope, c.curvature);
        for (int i = 0; i < nr; ++i) u[r + i] = -c.slope[i];
    }
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
