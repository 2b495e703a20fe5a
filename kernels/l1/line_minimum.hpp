// Exact line search for a quadratic plus an L1 penalty: along a line, a parabola with a kink wherever a coefficient
// changes its sign.
#pragma once
#include "core/rows.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

inline double larger(double a, double b) { return a > b ? a : b; }

// Violation of the optimality condition of a coefficient: |slope| <= l1 at 0, slope = -l1 sign elsewhere.
inline double breach_of(double weight, double slope, double l1) {
    if (weight == 0.0) return larger(__builtin_fabs(slope) - l1, 0.0);
    return __builtin_fabs(slope + (weight > 0.0 ? l1 : -l1));
}

// Step sizes at which a coefficient changes its sign, as a min-heap; `who` holds the index of each.
struct Kinks {
    double* at;
    i64* who;
    i64 count = 0;

    void add(double length, i64 name) {
        at[count] = length;
        who[count++] = name;
    }
    void order() {
        for (i64 c = count / 2 - 1; c >= 0; --c) sift(c);
    }
    i64 take() {
        const i64 name = who[0];
        --count;
        at[0] = at[count], who[0] = who[count];
        sift(0);
        return name;
    }
    void sift(i64 from) {
        for (i64 child; (child = 2 * from + 1) < count; from = child) {
            if (child + 1 < count && at[child + 1] < at[child]) ++child;
            if (!(at[child] < at[from])) return;
            const double length = at[from];
            const i64 name = who[from];
            at[from] = at[child], who[from] = who[child];
            at[child] = length, who[child] = name;
        }
    }
};

struct Landing {
    double length;
    i64 who;       // the coefficient that is 0 there, or -1
    bool crossed;  // whether a coefficient has changed its sign or become 0
};

// The derivative is `slope` < 0 at step 0; it grows by `curved` per unit step, and by 2 jump(c) at the kink of c.
template <class F>
inline Landing minimum_along(Kinks& kinks, double slope, double curved, F jump) {
    kinks.order();
    Landing found{0.0, -1, false};
    for (;;) {
        const double meets = curved > 0.0 ? found.length - slope / curved : -1.0;  // root of the derivative
        if (kinks.count == 0 || (curved > 0.0 && meets <= kinks.at[0])) {
            if (curved > 0.0) found.length = meets;
            return found;
        }
        const double next = kinks.at[0];
        const i64 c = kinks.take();
        slope += curved * (next - found.length) + 2.0 * jump(c);
        found.length = next;
        found.crossed = true;
        if (slope >= 0.0) {
            found.who = c;
            return found;
        }
    }
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
