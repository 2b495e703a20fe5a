// Scratch memory that is sized by the code that uses it: a driver takes all its arrays when it is made. Made without
// memory it only counts, made again with as much it works (bindings/types.hpp: in_arena).
#pragma once
#include <cstddef>
#include <new>

#include "core/api.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace linsep {

struct Arena {
    // Doubles between two arrays that nobody may touch, where a sanitizer watches.
#if defined(__SANITIZE_ADDRESS__)
    static constexpr i64 guard = 8;
#else
    static constexpr i64 guard = 0;
#endif
    // Doubles: more than any machine addresses. What is beyond counts as one more, and there is no such memory.
    static constexpr i64 most = i64{1} << 57;

    double* at = nullptr;  // null: count
    i64 used = 0;

    bool counts() const { return !at; }
    // An array with as many numbers as the product of the factors.
    template <class... Factors>
    double* take(i64 size, Factors... factors) {
        const bool wrapped = size < 0 || (... || (factors < 0 || __builtin_mul_overflow(size, factors, &size)));
        if (wrapped || size > most - used) {
            used = most + 1;
            return nullptr;
        }
        double* here = at ? at + used : nullptr;
        used += size + guard;
#if defined(__SANITIZE_ADDRESS__)
        if (here) {  // what others took from a copy of this arena is over
            ASAN_UNPOISON_MEMORY_REGION(here, sizeof(double) * static_cast<std::size_t>(size));
            ASAN_POISON_MEMORY_REGION(here + size, sizeof(double) * static_cast<std::size_t>(guard));
        }
#endif
        return here;
    }
    i64* take_ids(i64 size) { return reinterpret_cast<i64*>(take(size)); }
    // The next array begins a cache line.
    void align() { used += at ? (8 - static_cast<i64>(reinterpret_cast<std::uintptr_t>(at + used) / 8 % 8)) % 8 : 7; }
    // Memory of which the users take what they need one after the other: `first` and `second` began as copies of this.
    void cover(const Arena& first, const Arena& second) { used = first.used > second.used ? first.used : second.used; }
};

namespace {  // one copy for each file: instruction sets must not share code

// Memory of a size that only the work shows; `at` is null if there is none to be had, or none is wanted.
template <class T>
struct Allocated {
    T* const at;

    explicit Allocated(i64 size)
        : at(size > 0 && size <= Arena::most ? new (std::nothrow) T[static_cast<std::size_t>(size)] : nullptr) {}
    ~Allocated() { delete[] at; }
    Allocated(const Allocated&) = delete;
    Allocated& operator=(const Allocated&) = delete;
};

}  // namespace
}  // namespace linsep
