// Scratch memory that is sized by the code that uses it: a driver takes all its arrays when it is made. Made without
// memory it only counts, made again with as much it works (bindings/types.hpp: in_arena).
#pragma once
#include <cstdlib>

#include "core/api.hpp"

namespace linsep {

struct Arena {
    double* at = nullptr;  // null: count
    i64 used = 0;

    bool counts() const { return !at; }
    double* take(i64 size) {
        double* here = at ? at + used : nullptr;
        used += size;
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
        : at(size > 0 ? static_cast<T*>(std::malloc(sizeof(T) * static_cast<std::size_t>(size))) : nullptr) {}
    ~Allocated() { std::free(at); }
    Allocated(const Allocated&) = delete;
    Allocated& operator=(const Allocated&) = delete;
};

}  // namespace
}  // namespace linsep
