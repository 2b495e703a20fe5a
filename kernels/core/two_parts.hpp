// A loop over 0 .. n-1 split in two parts, which two threads may run in parallel. The split depends on the data alone,
// and the sums of the second part are added to those of the first, so results do not depend on the number of threads.
#pragma once
#include "core/api.hpp"
#include "core/interrupt.hpp"

namespace linsep {
namespace {  // one copy for each file: instruction sets must not share code

// Guard for the task of a helper thread: if the caller unwinds, the task must end before the memory it uses is freed.
struct Started {
    Helper helper;
    bool done = false;

    ~Started() {
        if (!done) helper.drop(helper.self);
    }
};

struct TwoParts {
    i64 n = 0, cut = 0;  // cut = n: one part
    Helper helper{};

    bool two() const { return cut < n; }

    // f(lo, hi, part)
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
        if (two() && helper.start) {
            Started other{helper};
            helper.start(helper.self, make, &second);
            f(i64{0}, cut, 0);
            helper.wait(helper.self);
            other.done = true;
        } else {
            f(i64{0}, cut, 0);
            if (two()) make(&second);
        }
    }
    // Call f on slabs of at most `rows` rows of each part, with a poll before each slab, for passes that do not poll
    // themselves. The slabs depend on the data alone.
    template <class F>
    void each_slab(i64 rows, const F& f) const {
        const i64 longest = cut > n - cut ? cut : n - cut;
        for (i64 at = 0; at < longest || at == 0; at += rows) {
            poll();
            each([&](i64 first, i64 end, int part) {
                const i64 lo = end - first > at ? first + at : end, hi = end - lo > rows ? lo + rows : end;
                if (lo < hi || at == 0) f(lo, hi, part);
            });
        }
    }
    // out = sum over both parts, where f(lo, hi, sum, part) adds to `sum`, in slabs of at most `rows` rows. `other` is
    // scratch for the second part.
    template <class F>
    void sum(double* out, double* other, i64 size, const F& f, i64 rows = i64{1} << 40) const {
        for (i64 j = 0; j < size; ++j) out[j] = 0.0;
        for (i64 j = 0; two() && j < size; ++j) other[j] = 0.0;
        each_slab(rows, [&](i64 lo, i64 hi, int part) { f(lo, hi, part ? other : out, part); });
        for (i64 j = 0; two() && j < size; ++j) out[j] += other[j];
    }
};

}  // namespace
}  // namespace linsep
