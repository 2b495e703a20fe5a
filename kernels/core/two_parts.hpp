// Work on 0 .. n-1 in two parts that two threads may make at once. Where the cut is depends on the data alone, so that the
// bits do not depend on the number of threads. Like core/halves.hpp, for files that are compiled once.
#pragma once
#include <memory>
#include <new>
#include <vector>

#include "core/api.hpp"

namespace linsep {

// Room for numbers that are written before they are read: large ones cost their pages when they are set to 0.
template <class T>
struct Unset : std::allocator<T> {
    template <class U>
    struct rebind {
        using other = Unset<U>;
    };
    template <class U>
    void construct(U* at) noexcept {
        ::new (static_cast<void*>(at)) U;
    }
    template <class U, class V>
    void construct(U* at, V&& value) {
        ::new (static_cast<void*>(at)) U(static_cast<V&&>(value));
    }
};
template <class T>
using Room = std::vector<T, Unset<T>>;

struct TwoParts {
    Helper helper{};

    double large = 500'000;  // stored numbers that the work reads: a thread costs 30 us

    // f(lo, hi, part)
    template <class F>
    void each(std::int64_t n, double entries, const F& f) const {
        const std::int64_t cut = entries >= large ? n / 2 : n;
        struct Task {
            const F* f;
            std::int64_t lo, hi;
        } second{&f, cut, n};
        const auto make = [](void* at) {
            const Task* task = static_cast<const Task*>(at);
            (*task->f)(task->lo, task->hi, 1);
        };
        const bool helped = cut < n && helper.start;
        if (helped) helper.start(helper.self, make, &second);
        f(std::int64_t{0}, cut, 0);
        if (helped)
            helper.wait(helper.self);
        else if (cut < n)
            make(&second);
    }
    // f(lo, hi, out) adds to `size` numbers; the sums of the second part are added to those of the first.
    template <class V, class F>
    void sum(std::int64_t n, double entries, std::int64_t size, V& out, V& other, const F& f) const {
        out.assign(static_cast<std::size_t>(size), 0.0);
        const bool two = entries >= large && n > 1;
        if (two) other.assign(static_cast<std::size_t>(size), 0.0);
        each(n, entries, [&](std::int64_t lo, std::int64_t hi, int part) { f(lo, hi, (part ? other : out).data()); });
        for (std::size_t j = 0; two && j < static_cast<std::size_t>(size); ++j) out[j] += other[j];
    }
};

}  // namespace linsep
