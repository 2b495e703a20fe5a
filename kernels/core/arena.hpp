// Scratch memory that is sized by the code that uses it. A driver takes all its arrays in its constructor: constructed
// with an empty arena it only counts doubles, constructed again with that many it runs (bindings/types.hpp: in_arena).
#pragma once
#include <cstddef>
#include <new>

#include "core/api.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace linsep {

struct Arena {
    // Poisoned doubles between two arrays, with which AddressSanitizer detects overruns.
#if defined(__SANITIZE_ADDRESS__)
    static constexpr i64 guard = 8;
#else
    static constexpr i64 guard = 0;
#endif
    // Upper limit on the size in doubles, more than any machine can address. A larger request counts as most + 1, which
    // no allocation can satisfy.
    static constexpr i64 most = i64{1} << 57;

    double* at = nullptr;  // null: count only
    i64 used = 0;

    bool counts() const { return !at; }
    // Take an array whose length is the product of the arguments.
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
        if (here) {  // arrays taken from a copy of this arena are no longer in use
            ASAN_UNPOISON_MEMORY_REGION(here, sizeof(double) * static_cast<std::size_t>(size));
            ASAN_POISON_MEMORY_REGION(here + size, sizeof(double) * static_cast<std::size_t>(guard));
        }
#endif
        return here;
    }
    i64* take_ids(i64 size) { return reinterpret_cast<i64*>(take(size)); }
    // Align the next array to a cache line.
    void align() { used += at ? (8 - static_cast<i64>(reinterpret_cast<std::uintptr_t>(at + used) / 8 % 8)) % 8 : 7; }
    // Reserve the larger of two uses that share memory one after the other; both arenas began as copies of this.
    void cover(const Arena& first, const Arena& second) { used = first.used > second.used ? first.used : second.used; }
};

namespace {  // one copy for each file: instruction sets must not share code

// Array whose size is known only during the computation; `at` is null if the allocation failed or the size is 0.
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
