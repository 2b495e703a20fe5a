// Injection of allocation failures, for tests of error handling. Only in builds with a sanitizer.
#include <atomic>
#include <cstdlib>
#include <new>

#include "bindings/types.hpp"

namespace {

std::atomic<std::int64_t> before{-1};  // number of allocations that succeed before one fails; negative: all succeed
std::atomic<std::int64_t> made{0}, live{0};

void* allocate(std::size_t size) noexcept {
    made.fetch_add(1);
    if (before.load() >= 0 && before.fetch_sub(1) == 0) return nullptr;
    void* at = std::malloc(size ? size : 1);
    if (at) live.fetch_add(1);
    return at;
}
void release(void* at) noexcept {
    if (at) live.fetch_sub(1);
    std::free(at);
}

}  // namespace

void* operator new(std::size_t size) {
    if (void* at = allocate(size)) return at;
    throw std::bad_alloc();
}
void* operator new[](std::size_t size) { return operator new(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
void operator delete(void* at) noexcept { release(at); }
void operator delete[](void* at) noexcept { release(at); }
void operator delete(void* at, std::size_t) noexcept { release(at); }
void operator delete[](void* at, std::size_t) noexcept { release(at); }

namespace linsep::python {

void bind_allocation_faults(nb::module_& m) {
    using namespace nb::literals;
    m.def(
        "fail_allocation", [](int64_t after) { before.store(after); }, "after"_a,
        "Let the allocation fail that follows so many that succeed, once; a negative number calls it off.");
    m.def(
        "allocations", [] { return std::tuple(made.load(), live.load()); },
        "Allocations of the kernels so far, and those that were not freed.");
}

}  // namespace linsep::python
