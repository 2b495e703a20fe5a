// Loops of the dual ascent driver that are split between two threads if they are large, and uninitialised vectors.
#pragma once
#include <memory>
#include <new>
#include <vector>

#include "core/two_parts.hpp"

namespace linsep {

// Allocator that leaves elements uninitialised, because zeroing a large vector would touch all its pages.
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
using Buffer = std::vector<T, Unset<T>>;

struct LargeWork {
    Helper helper{};
    double large = 500'000;  // entries read from which two threads are used: starting a task costs 30 us

    // call f(lo, hi, part) on slabs of 0 .. n-1
    template <class F>
    void each(i64 n, double entries, const F& f) const {
        cut(n, entries).each_slab(slab(n, entries), f);
    }
    // out = sum over slabs of 0 .. n-1, where f(lo, hi, out) adds to `size` numbers
    template <class V, class F>
    void sum(i64 n, double entries, i64 size, V& out, V& other, const F& f) const {
        const TwoParts parts = cut(n, entries);
        out.resize(static_cast<std::size_t>(size));
        if (parts.two()) other.resize(static_cast<std::size_t>(size));
        const auto add = [&](i64 lo, i64 hi, double* to, int) { f(lo, hi, to); };
        parts.sum(out.data(), other.data(), size, add, slab(n, entries));
    }

  private:
    // Rows of a part that are read between two polls: about 16 million entries, rounded to whole groups of the rows
    // that kernels process together.
    static i64 slab(i64 n, double entries) {
        const double fit = 16e6 * static_cast<double>(n) / (entries + 1.0);
        return 1024 * (1 + static_cast<i64>(fit < 1e12 ? fit / 1024.0 : 1e9));
    }
    TwoParts cut(i64 n, double entries) const { return {n, entries >= large ? n / 2 : n, helper}; }
};

}  // namespace linsep
