// The best intercept for given scores, and dual variables that allow it: neither costs a visit to X.
//
// The loss sum s l(sign (z + b) + offset) is convex in b. Losses with curvature: Newton's method between the b whose
// slopes enclose the best. Losses with a kink: each row has one break point, where its slope jumps by s times the width of
// its interval of u, and the best b is a weighted order statistic of them.
//
// A dual point is feasible for a free intercept only if e = sum s sign u = 0. The u that ascent leaves are moved there as one
// shift of b would move them. To shrink the u of one class would also do, but costs much where u is at an end.
#pragma once
#include "core/interrupt.hpp"
#include "interior/passes.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

// The least t among x with  sum of weight over x <= t  at least target, by partition; x and weight are permuted.
// A target beyond the total gives the largest x of positive weight; a NaN that is taken for a pivot is the answer.
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

// At the scores z + b: the sums of s l, s sign l' and s l'', which is all that Newton's method for b needs.
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

constexpr i64 kFew = 48;  // break points among which an order statistic is soon found

struct BreakPoints {
    i64 n;
    Targets t;
    Box box;
    const double* z;

    double weight(i64 i) const { return t.weight ? t.weight[i] : 1.0; }
    double at(i64 i) const { return t.sign[i] * (box.kink - (t.offset ? t.offset[i] : 0.0)) - z[i]; }

    // Sum of the weights of the break points x <= at, and how many they are, by whole vectors: x is padded with infinity.
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

    // The best b: the least break point up to which the jumps add up to minus the slope by b at the far left. It is enclosed,
    // first within `reach` of the b given, and where few break points are left the order statistic is taken. Each
    // trial is a pass over an array, which costs less than to part it. Other rows, whose u stays, add `rest` to e. Room
    // for 4 n + 32 numbers.
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
        i64 first = 0, last = n, count = 0;  // break points up to low, up to high
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
            // where the jumps were even, or the middle: by turns, so that neither clusters nor gaps can hold it up
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

    // u with e = 0, where it costs least. Free rows are at their kink and cost nothing, to first order, and all of them
    // together little to second. If they have not room enough the others follow: to lower e by one unit at row i changes
    // the dual by (b - break point of i) whatever its class, so they give in the order of their break points.
    void balance(double* u, double* room) const {
        double total = 0;
        for (i64 i = 0; i < n; ++i) total += weight(i);
        for (int attempt = 0; attempt < 4; ++attempt) {  // again for what rounding left
            poll();
            double e = 0;
            for (i64 i = 0; i < n; ++i) e += weight(i) * t.sign[i] * u[i];
            const bool over = e > 0.0;
            const double size = __builtin_fabs(e);
            if (!(size > 1e-14 * total)) return;  // what is left is rounding, and shrinking a class will do
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

// Newton's method for b at the scores z, to a step below fine (1 + |b|): {b, sum s l close to it}. Other rows, whose u
// stays, add `rest` to e.
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
        // Far out, where there is no curvature, a slope says nothing about the distance.
        const double far = 4.0 + 2.0 * __builtin_fabs(b), away = slope > 0.0 ? -far : far;
        double move = curvature > 0.0 ? -slope / curvature : away;
        move = move < -far ? -far : move > far ? far : move;
        b = low <= b + move && b + move <= high ? b + move : 0.5 * (low + high);
        if (__builtin_fabs(move) <= fine * (1.0 + __builtin_fabs(b))) break;
    }
    return {b, value};
}

// Room for 4 n + 32 numbers.
inline Settled best_intercept(i64 n, const Targets& t, LossSpec spec, bool free, const double* z, double b,
                              double reach, double fine, double* room, double rest = 0.0) {
    if (!has_kink(spec.id)) return best_smooth(n, t, spec, free, z, b, fine, rest);
    if (free && n > 0) b = BreakPoints{n, t, Box(spec), z}.best(b, reach, rest, room);
    double sums[3] = {};
    shifted_sums(0, n, t, spec, z, b, sums);
    return {b, sums[0]};
}

// The same for the rows of a list alone: e is the sum of s sign u over all rows, and the u of the others stay. The loss
// is that of the list. Room for 8 count + 32 numbers.
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

// u with e = 0. Losses with curvature: u_i is the slope at z_i + seen_i, and those at z_i + seen_i + b add up to 0.
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
