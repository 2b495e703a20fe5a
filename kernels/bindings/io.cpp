// Parsing and checks of user input: LIBSVM text, CSR arrays, labels.
#include "bindings/types.hpp"
#include "io/duplicate_columns.hpp"
#include "io/labels.hpp"
#include "io/libsvm.hpp"

namespace linsep::python {
namespace {

using Bytes = Array<const unsigned char>;
using Outcome = std::tuple<int, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t>;

std::tuple<int64_t, int64_t> libsvm_count(Bytes text) {
    const unsigned char* p = text.data();
    const int64_t size = length(text);
    nb::gil_scoped_release release;
    int64_t lines = 0, colons = 0;
    for (int64_t i = 0; i < size; ++i) lines += p[i] == '\n', colons += p[i] == ':';
    return {lines, colons};
}

template <class T, class I>
Outcome libsvm_read(Bytes text, int64_t limit, Out labels, IdOut qid, IdOut starts, OutOf<I> indices, OutOf<T> values) {
    const auto [lines, colons] = libsvm_count(text);
    need(length(labels) > lines && length(qid) > lines && length(starts) > lines + 1,
         "labels, qid and starts need room for every line");
    need(length(indices) >= colons && length(values) >= colons, "indices and values need room for every colon");
    const char* bytes = reinterpret_cast<const char*>(text.data());
    nb::gil_scoped_release release;
    libsvm::Reader<T, I> reader(bytes, length(text), limit);
    const libsvm::Outcome done = reader.run(labels.data(), qid.data(), starts.data(), indices.data(), values.data());
    return {static_cast<int>(done.fault),
            done.at,
            done.detail,
            done.rows,
            done.entries,
            done.qids,
            done.lowest,
            done.highest};
}

template <class I>
bool csr_repeats(AsGiven<Array<const I>> indices, AsGiven<Array<const I>> indptr, int64_t d) {
    const int64_t n = length(indptr) - 1;
    need(n >= 0 && n < (int64_t{1} << 31) && d >= 0, "indptr has n + 1 entries");
    nb::gil_scoped_release release;
    const char* fault = csr_fault(indptr.data(), indices.data(), n, d, length(indices));
    need(!fault, fault);
    return repeats(indices.data(), indptr.data(), n, d);
}

bool sound(AnyArray starts, AnyArray indices, int64_t bound) {
    const bool i32 = indices.dtype() == nb::dtype<std::int32_t>();
    need(starts.ndim() == 1 && indices.ndim() == 1 && starts.shape(0) >= 1, "indptr and indices are 1-D arrays");
    need((i32 || indices.dtype() == nb::dtype<int64_t>()) && starts.dtype() == indices.dtype(),
         "indptr and indices are both int32 or int64");
    const auto check = [&]<class I>(const I* p) {
        const I* x = static_cast<const I*>(indices.data());
        return p[0] == 0 && !csr_fault(p, x, length(starts) - 1, bound, length(indices));
    };
    return i32 ? check(static_cast<const std::int32_t*>(starts.data()))
               : check(static_cast<const int64_t*>(starts.data()));
}

std::tuple<int64_t, int64_t> two_classes(AnyArray y, Out sign) {
    need(y.ndim() == 1, "y is a vector");
    const int64_t n = length(y);
    vector_of(sign, n, "sign has an entry per label");
    const auto find = [&]<class T>(const T* labels) { return find_two(labels, n, sign.data()); };
    nb::gil_scoped_release release;
    TwoClasses found{-1, -1};
    if (y.dtype() == nb::dtype<double>())
        found = find(static_cast<const double*>(y.data()));
    else if (y.dtype() == nb::dtype<int64_t>())
        found = find(static_cast<const int64_t*>(y.data()));
    else if (y.dtype() == nb::dtype<std::int32_t>())
        found = find(static_cast<const std::int32_t*>(y.data()));
    else if (y.dtype() == nb::dtype<bool>() || y.dtype() == nb::dtype<std::int8_t>())
        found = find(static_cast<const std::int8_t*>(y.data()));
    return {found.low, found.high};
}

using namespace nb::literals;

template <class T, class I>
void bind_libsvm_read(nb::module_& m) {
    m.def(
        "libsvm_read", &libsvm_read<T, I>, "text"_a, "limit"_a, "labels"_a, "qid"_a, "starts"_a, "indices"_a,
        "values"_a,
        "Parse LIBSVM text into the given arrays. Returns fault, byte, detail, rows, entries, rows with a qid, lowest "
        "and highest index as written.");
}

}  // namespace

void bind_io(nb::module_& m) {
    m.def("libsvm_count", &libsvm_count, "text"_a,
          "Numbers of line feeds and of colons: upper bounds of further rows and of entries.");
    bind_libsvm_read<double, std::int32_t>(m);
    bind_libsvm_read<double, int64_t>(m);
    bind_libsvm_read<float, std::int32_t>(m);
    bind_libsvm_read<float, int64_t>(m);
    constexpr const char* repeated = "Whether a row of a CSR matrix with d columns has a column twice.";
    m.def("csr_repeats", &csr_repeats<std::int32_t>, "indices"_a, "indptr"_a, "d"_a, repeated);
    m.def("csr_repeats", &csr_repeats<int64_t>, "indices"_a, "indptr"_a, "d"_a, repeated);
    m.def("sound", &sound, "starts"_a, "indices"_a, "bound"_a,
          "Whether the pointers of a CSR or CSC matrix begin with 0, never fall and end within what is stored, and all "
          "indices are at least 0 and below the bound.");
    m.def("two_classes", &two_classes, "y"_a, "sign"_a,
          "First rows with the smaller and with the larger of two labels; sign becomes -1 and +1. Returns (-1, -1) if "
          "there are not exactly two labels, or y has an unusual type.");
}

}  // namespace linsep::python
