// Shared by all bindings: array types of arguments, classes that hold arrays, and checks of sizes.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "core/arena.hpp"
#include "core/kernels.hpp"

namespace nb = nanobind;

namespace linsep::python {

using std::int64_t;

// An array argument that is never converted: a kernel writes to the array of the caller, and an array of another type
// raises TypeError.
template <class Array>
struct AsGiven : Array {
    AsGiven() = default;
    AsGiven(Array array) : Array(std::move(array)) {}
};

template <class T, std::size_t dimensions = 1>
using Array = nb::ndarray<T, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;

using In = Array<const double>;  // an input, converted to float64 if necessary
using In2 = Array<const double, 2>;
using View = AsGiven<In>;  // an input that must be float64 already: a copy would cost more than the kernel
using View2 = AsGiven<In2>;
using Ids = Array<const int64_t>;  // indices of rows, columns or classes
using IdView = AsGiven<Ids>;
template <class T, std::size_t dimensions = 1>
using OutOf = AsGiven<Array<T, dimensions>>;
using Out = OutOf<double>;
using Out2 = OutOf<double, 2>;
using IdOut = OutOf<int64_t>;
// one row per class or quantity, with any row stride
using InPlanes = nb::ndarray<const double, nb::ndim<2>, nb::device::cpu>;
using OutPlanes = AsGiven<nb::ndarray<double, nb::ndim<2>, nb::device::cpu>>;
using AnyArray = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;  // of any type, which the binding checks

// The table of the instruction set in use (bindings/instruction_sets.cpp).
extern const Table* const table;

// Raise ValueError unless ok.
void need(bool ok, const char* what);

// A number of entries. Sums and products that overflow 64 bits raise ValueError.
struct Size {
    int64_t value;

    constexpr Size(int64_t count) : value(count) {}
    friend Size operator+(Size a, Size b);
    friend Size operator*(Size a, Size b);
    auto operator<=>(const Size&) const = default;
};

template <class A>
int64_t length(const A& array) {
    return static_cast<int64_t>(array.shape(0));
}
template <class A>
int64_t width(const A& array) {
    return static_cast<int64_t>(array.shape(1));
}
template <class A>
auto data(const std::optional<A>& array) {
    return array ? array->data() : nullptr;
}

// Check sizes: inputs must have exactly the given size, outputs may be longer.
void vector_of(const In& v, Size size, const char* what);
void vector_of(const Out& v, Size size, const char* what);
template <class A>
void matrix_of(const A& a, Size rows, Size columns, const char* what) {
    need(length(a) == rows && width(a) == columns, what);
}
// Check that lo <= a < hi for all entries.
void in_range(const Ids& a, int64_t lo, int64_t hi, const char* what);

// Allocate `size` doubles, or raise MemoryError with the requested size.
struct Free {
    void operator()(double* at) const { ::operator delete(at); }
};
std::unique_ptr<double[], Free> scratch(Size size);
// Call run(arena) twice: first to count its scratch memory, then to compute. The padding lets kernels read whole
// vectors past the last array.
template <class F>
auto in_arena(const F& run) {
    constexpr int64_t beyond = 64;
    Arena arena;
    run(&arena);
    const auto room = scratch(arena.used + beyond);
    arena = {room.get(), 0};
    return run(&arena);
}

// Check that the row pointers of a CSR matrix begin with 0, never decrease and end within the stored entries, and that
// all indices are in 0 .. d-1. Return a description of the fault, or null.
template <class S, class I>
const char* csr_fault(const S* starts, const I* indices, int64_t n, int64_t d, int64_t stored);

// Holds references to the arrays it points into. CSR indices are checked once, in the constructor: writing to them
// during the lifetime of the object may make kernels read out of bounds. Kernels read 32-bit indices and 64-bit row
// pointers; others are copied.
struct PyRows {
    Rows rows;
    AnyArray values, indices, starts;
    std::shared_ptr<std::int32_t[]> own_indices;
    std::shared_ptr<int64_t[]> own_starts;

    explicit PyRows(AnyArray x);
    PyRows(AnyArray x, AnyArray index, AnyArray start, int64_t d);
    Size n() const { return rows.n; }
    Size d() const { return rows.d; }
    void range(int64_t lo, int64_t hi) const { need(0 <= lo && lo <= hi && hi <= rows.n, "rows out of range"); }
};

struct PyTargets {
    In sign;
    std::optional<In> offset, weight;
    Targets view;

    PyTargets(In s, std::optional<In> o, std::optional<In> w);
    int64_t count() const { return length(sign); }
    Size n() const { return count(); }
    void match(const PyRows& x) const { need(n() == x.n(), "targets and rows differ in length"); }
};

struct PyLoss {
    LossSpec spec;
    PyLoss(const std::string& name, double width, double centre);
};

struct PyClasses {
    Ids label;
    std::optional<In> weight;
    Classes view;

    PyClasses(Ids l, std::optional<In> w, int64_t k);
    Size n() const { return length(label); }
    Size k() const { return view.k; }
    Size padded() const { return padded_classes(view.k); }
    void match(const PyRows& x) const { need(n() == x.n(), "labels and rows differ in length"); }
    template <class P>
    void match_planes(const P& p) const {
        need(length(p) == view.k && width(p) == n() && p.stride(1) == 1,
             "probabilities have a contiguous plane of n entries per class");
    }
};

// Check k: the size of an array with a number for each column and class must fit in 64 bits.
void some_classes(int64_t k);

// One function for each folder of kernels.
void bind_instruction_sets(nb::module_& m);
void bind_interrupt(nb::module_& m);
void bind_mapped_files(nb::module_& m);
void bind_types(nb::module_& m);
void bind_io(nb::module_& m);
void bind_sums(nb::module_& m);
void bind_newton(nb::module_& m);
void bind_interior(nb::module_& m);
void bind_dual(nb::module_& m);
void bind_l1(nb::module_& m);
void bind_softmax(nb::module_& m);
void bind_grid(nb::module_& m);
void bind_online(nb::module_& m);
void bind_allocation_faults(nb::module_& m);  // only in builds with a sanitizer

}  // namespace linsep::python

template <class Array>
struct nanobind::detail::type_caster<linsep::python::AsGiven<Array>> {
    NB_TYPE_CASTER(linsep::python::AsGiven<Array>, make_caster<Array>::Name)

    template <class Flags>
    bool from_python(handle source, Flags flags, cleanup_list* cleanup) noexcept {
        make_caster<Array> as_given;
        constexpr auto convert = static_cast<Flags>(cast_flags::convert);
        if (!as_given.from_python(source, static_cast<Flags>(flags & static_cast<Flags>(~convert)), cleanup))
            return false;
        value = std::move(as_given.value);
        return true;
    }
};
