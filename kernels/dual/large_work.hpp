// Work of the driver of dual ascent that is cut in two where it is large, and vectors for it.
#pragma once
#include <algorithm>
#include <memory>
#include <new>
#include <vector>

#include "core/interrupt.hpp"
#include "core/two_parts.hpp"

namespace linsep {

// Numbers that are written before they are read: large vectors cost their pages when they are set to 0.
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

struct LargeWork {
    Helper helper{};
    double large = 500'000;  // stored numbers that the work reads: a thread costs 30 us

    // f(lo, hi, part) on 0 .. n-1
    template <class F>
    void each(i64 n, double entries, const F& f) const {
        in_slabs(cut(n, entries), entries, f);
    }
    // f(lo, hi, out) adds to `size` numbers
    template <class V, class F>
    void sum(i64 n, double entries, i64 size, V& out, V& other, const F& f) const {
        const TwoParts parts = cut(n, entries);
        out.resize(static_cast<std::size_t>(size));
        if (parts.two()) other.resize(static_cast<std::size_t>(size));
        std::fill_n(out.data(), size, 0.0);
        if (parts.two()) std::fill_n(other.data(), size, 0.0);
        in_slabs(parts, entries, [&](i64 lo, i64 hi, int part) { f(lo, hi, part ? other.data() : out.data()); });
        for (std::size_t j = 0; parts.two() && j < out.size(); ++j) out[j] += other[j];
    }

  private:
    static constexpr double kSlab = 16'000'000;  // stored numbers of a part that are read between two polls
    static constexpr i64 kGrain = 1024;          // rows of a slab are a multiple of it

    // Both parts at the same time, from slab to slab. Where slabs begin depends on the data alone, and so do the bits.
    template <class F>
    static void in_slabs(const TwoParts& parts, double entries, const F& f) {
        const i64 longest = parts.cut > parts.n - parts.cut ? parts.cut : parts.n - parts.cut;
        const double per_row = entries / static_cast<double>(parts.n > 0 ? parts.n : 1);
        const double fit = kSlab / (per_row > 1.0 ? per_row : 1.0) / kGrain;
        const i64 rows = kGrain * (fit < 1.0 ? 1 : fit < 1e12 ? static_cast<i64>(fit) : i64{1} << 40);
        for (i64 at = 0; at < longest || at == 0; at += rows) {
            const auto within = [&](i64 first, i64 end) { return first + at < end ? first + at : end; };
            const auto until = [&](i64 first, i64 end) { return first + at + rows < end ? first + at + rows : end; };
            poll();
            const auto work = [&](i64, i64, int part) {
                const i64 first = part ? parts.cut : 0, end = part ? parts.n : parts.cut;
                const i64 lo = within(first, end), hi = until(first, end);
                if (lo < hi || at == 0) f(lo, hi, part);
            };
            parts.each(work);
        }
    }
    TwoParts cut(i64 n, double entries) const { return {n, entries >= large ? n / 2 : n, helper}; }
};

}  // namespace linsep
