// The objects that every kernel reads: rows, targets, losses, classes.
#include "bindings/types.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <new>
#include <stdexcept>
#include <type_traits>

namespace linsep {
namespace {

// Translated to MemoryError in Python. The exception itself holds the message, because there may be no memory for it.
struct NoMemory : std::bad_alloc {
    char words[80];

    explicit NoMemory(double bytes) {
        constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
        std::snprintf(words, sizeof words, "Unable to allocate %.3g GiB of working memory", bytes / kGiB);
    }
    const char* what() const noexcept override { return words; }
};

PyObject* no_memory = nullptr;  // the Python exception type

}  // namespace

namespace python {

void need(bool ok, const char* what) {
    if (!ok) throw std::invalid_argument(what);
}
Size operator+(Size a, Size b) {
    int64_t sum;
    need(!__builtin_add_overflow(a.value, b.value, &sum), "these arrays together have more entries than 64 bits count");
    return sum;
}
Size operator*(Size a, Size b) {
    int64_t product;
    need(!__builtin_mul_overflow(a.value, b.value, &product),
         "an array for these rows and columns has more entries than 64 bits count");
    return product;
}
void vector_of(const In& v, Size size, const char* what) { need(length(v) == size, what); }
void vector_of(const Out& v, Size size, const char* what) { need(length(v) >= size, what); }
void in_range(const Ids& a, int64_t lo, int64_t hi, const char* what) {
    for (int64_t i = 0; i < length(a); ++i) need(lo <= a.data()[i] && a.data()[i] < hi, what);
}
std::unique_ptr<double[], Free> scratch(Size size) {
    if (size > Arena::most) throw NoMemory(8.0 * static_cast<double>(size.value));
    const std::size_t bytes = sizeof(double) * static_cast<std::size_t>(size.value);
    std::unique_ptr<double[], Free> room(static_cast<double*>(::operator new(bytes, std::nothrow)));
    if (!room) throw NoMemory(static_cast<double>(bytes));
    return room;
}

namespace {

// Return whether 0 <= index < bound for all indices. Otherwise x or bound - 1 - x is negative for some x, and so is the
// bitwise "or" of all of them, which compilers vectorise on every instruction set.
template <class I>
bool all_within(const I* indices, int64_t count, int64_t bound) {
    using U = std::make_unsigned_t<I>;
    const U last = static_cast<U>(std::min<int64_t>(bound, std::numeric_limits<I>::max()) - 1);
    U found = 0;
    for (int64_t p = 0; p < count; ++p) found |= static_cast<U>(indices[p]) | (last - static_cast<U>(indices[p]));
    return static_cast<I>(found) >= 0 && (count == 0 || bound > 0);
}

template <class I>
bool never_falls(const I* starts, int64_t n) {
    I found = 0;
    for (int64_t i = 0; i < n; ++i) found |= starts[i + 1] < starts[i];
    return found == 0;
}

}  // namespace

template <class S, class I>
const char* csr_fault(const S* starts, const I* indices, int64_t n, int64_t d, int64_t stored) {
    if (n > 0 && starts[0] != 0) return "CSR: indptr must begin with 0";
    if (!never_falls(starts, n)) return "CSR: indptr must not decrease";
    if (static_cast<int64_t>(starts[n]) > stored) return "CSR: indptr ends beyond the stored entries";
    if (!all_within(indices, static_cast<int64_t>(starts[n]), d)) return "CSR: a column index is out of range";
    return nullptr;
}
template const char* csr_fault(const std::int32_t*, const std::int32_t*, int64_t, int64_t, int64_t);
template const char* csr_fault(const int64_t*, const std::int32_t*, int64_t, int64_t, int64_t);
template const char* csr_fault(const int64_t*, const int64_t*, int64_t, int64_t, int64_t);

namespace {

// The size of a matrix of order d + 1 must fit in 64 bits.
void few_enough(int64_t d) { need(0 <= d && d < (int64_t{1} << 31) - 1, "rows have fewer than 2^31 - 1 columns"); }

// Compilers assume that numbers are aligned to their size.
void require_aligned(const AnyArray& a) {
    need(reinterpret_cast<std::uintptr_t>(a.data()) % (a.dtype().bits / 8) == 0, "the numbers are not aligned");
}

template <class From, class To>
const To* copy(const From* from, std::size_t count, std::shared_ptr<To[]>& own) {
    own.reset(new To[count]);
    std::transform(from, from + count, own.get(), [](From x) { return static_cast<To>(x); });
    return own.get();
}

}  // namespace

PyRows::PyRows(AnyArray x) : values(x) {
    need(x.ndim() == 2, "dense rows need a 2-D array");
    const bool f64 = x.dtype() == nb::dtype<double>(), f32 = x.dtype() == nb::dtype<float>();
    need(f64 || f32, "dense rows are float32 or float64");
    require_aligned(x);
    few_enough(width(x));
    rows = {f64 ? Store::dense64 : Store::dense32, length(x), width(x), x.data(), nullptr, nullptr};
}

PyRows::PyRows(AnyArray x, AnyArray index, AnyArray start, int64_t d) : values(x), indices(index), starts(start) {
    const bool f64 = x.dtype() == nb::dtype<double>(), f32 = x.dtype() == nb::dtype<float>();
    const auto narrow = [](const AnyArray& a) { return a.dtype() == nb::dtype<std::int32_t>(); };
    const auto wide = [](const AnyArray& a) { return a.dtype() == nb::dtype<int64_t>(); };
    need(f64 || f32, "CSR values are float32 or float64");
    need((narrow(index) || wide(index)) && (narrow(start) || wide(start)), "CSR indices and indptr are int32 or int64");
    need(x.ndim() == 1 && index.ndim() == 1 && start.ndim() == 1 && start.shape(0) >= 1, "CSR needs three 1-D arrays");
    need(x.shape(0) == index.shape(0), "CSR: data and indices differ in length");
    few_enough(d);
    for (const AnyArray* a : {&x, &index, &start}) require_aligned(*a);
    nb::gil_scoped_release release;
    rows = {f64 ? Store::csr64 : Store::csr32, length(start) - 1, d, x.data(), nullptr, nullptr};
    rows.starts = narrow(start) ? copy(static_cast<const std::int32_t*>(start.data()), start.shape(0), own_starts)
                                : static_cast<const int64_t*>(start.data());
    const auto check = [&](const auto* p) {
        const char* fault = csr_fault(rows.starts, p, rows.n, d, length(x));
        need(!fault, fault);
        return p;
    };
    rows.indices = narrow(index) ? check(static_cast<const std::int32_t*>(index.data()))
                                 : copy(check(static_cast<const int64_t*>(index.data())),
                                        static_cast<std::size_t>(rows.starts[rows.n]), own_indices);
}

PyTargets::PyTargets(In s, std::optional<In> o, std::optional<In> w) : sign(s), offset(o), weight(w) {
    need(!o || o->shape(0) == s.shape(0), "offset and sign differ in length");
    need(!w || w->shape(0) == s.shape(0), "weight and sign differ in length");
    view = {s.data(), data(o), data(w)};
}

PyLoss::PyLoss(const std::string& name, double width, double centre) : spec{LossId::logistic, {width, centre}} {
    static const char* names[] = {"logistic", "exponential", "squared",  "squared_hinge", "huberised_hinge",
                                  "huber",    "hinge",       "absolute", "perceptron"};
    for (int i = 0; i < 9; ++i)
        if (name == names[i]) {
            spec.id = static_cast<LossId>(i);
            return;
        }
    throw std::invalid_argument("no native loss named '" + name + "'");
}

void some_classes(int64_t k) { need(1 <= k && k <= int64_t{1} << 24, "there are 1 to 2^24 classes"); }

PyClasses::PyClasses(Ids l, std::optional<In> w, int64_t k) : label(l), weight(w) {
    some_classes(k);
    need(k >= 2, "at least two classes are needed");
    need(!w || w->shape(0) == l.shape(0), "weight and labels differ in length");
    in_range(l, 0, k, "labels are 0 .. k - 1");
    view = {l.data(), data(w), k};
}

void bind_types(nb::module_& m) {
    using namespace nb::literals;
    no_memory = PyErr_NewExceptionWithDoc(
        "linsep._kernels.NoMemory", "Scratch memory that a kernel cannot have; the words say how much, not for what.",
        PyExc_MemoryError, nullptr);
    if (!no_memory) nb::raise_python_error();
    m.attr("NoMemory") = nb::borrow(no_memory);
    nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
        try {
            std::rethrow_exception(thrown);
        } catch (const NoMemory& error) {
            PyErr_SetString(no_memory, error.what());
        } catch (const std::bad_alloc&) {
            PyErr_SetString(no_memory, "Unable to allocate working memory");
        }
    });
    nb::class_<PyRows>(m, "Rows", "Rows of data: a dense array, or the three arrays of a CSR matrix, which it holds.")
        .def(nb::init<AnyArray>(), "x"_a)
        .def(nb::init<AnyArray, AnyArray, AnyArray, int64_t>(), "data"_a, "indices"_a, "indptr"_a, "n_columns"_a)
        .def_prop_ro(
            "n", [](const PyRows& rows) { return rows.rows.n; }, "Number of rows.")
        .def_prop_ro("d", [](const PyRows& rows) { return rows.rows.d; }, "Number of columns.");
    nb::class_<PyTargets>(m, "Targets",
                          "Signs, offsets and weights of the rows: row i has margin sign (x.w + b) + offset and counts "
                          "weight times.")
        .def(nb::init<In, std::optional<In>, std::optional<In>>(), "sign"_a, "offset"_a.none() = nb::none(),
             "weight"_a.none() = nb::none());
    nb::class_<PyLoss>(m, "Loss", "A native loss by its name, with its two parameters.")
        .def(nb::init<const std::string&, double, double>(), "name"_a, "width"_a = 1.0, "centre"_a = 1.0);
    nb::class_<PyClasses>(m, "Classes", "Labels 0 .. k - 1 and weights of the rows.")
        .def(nb::init<Ids, std::optional<In>, int64_t>(), "labels"_a, "weight"_a.none(), "k"_a)
        .def_prop_ro(
            "padded", [](const PyClasses& classes) { return classes.padded().value; },
            "k, padded to a multiple of 8: the columns of a weight matrix.");
}

}  // namespace python
}  // namespace linsep
