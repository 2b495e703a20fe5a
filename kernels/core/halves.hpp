// A pass over the rows in two halves, which two threads may make at once. Where the cut is depends on the data alone,
// and the sums of the second half are added to those of the first: the bits do not depend on the number of threads.
#pragma once
#include "core/rows.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

struct Halves {
    i64 n = 0, cut = 0;  // cut = n: one piece
    Helper helper{};

    Halves() = default;
    template <class R>
    Halves(const R& X, Helper who) : n(X.n), cut(X.n), helper(who) {
        const double entries = (double)X.stored();
        if (X.n && worth_halving(entries, entries / (double)X.n)) cut = X.n / 2 / kMaxChunk * kMaxChunk;
    }
    bool two() const { return cut < n; }

    // f(lo, hi, 0) of the first rows and f(lo, hi, 1) of the others
    template <class F>
    void each(const F& f) const {
        struct Task {
            const F* f;
            i64 lo, hi;
        } second{&f, cut, n};
        const auto make = [](void* at) {
            const Task* task = static_cast<const Task*>(at);
            (*task->f)(task->lo, task->hi, 1);
        };
        const bool helped = two() && helper.start;
        if (helped) helper.start(helper.self, make, &second);
        f((i64)0, cut, 0);
        if (helped)
            helper.wait(helper.self);
        else if (two())
            make(&second);
    }
    // out = f(lo, hi, out, 0) + f(lo, hi, other, 1), where f adds to what it is given
    template <class F>
    void sum(double* out, double* other, i64 size, const F& f) const {
        for (i64 j = 0; j < size; ++j) out[j] = 0.0;
        for (i64 j = 0; two() && j < size; ++j) other[j] = 0.0;
        each([&](i64 lo, i64 hi, int part) { f(lo, hi, part ? other : out, part); });
        for (i64 j = 0; two() && j < size; ++j) out[j] += other[j];
    }
};

}  // namespace
}  // namespace linsep::LINSEP_ARCH
