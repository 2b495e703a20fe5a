// The only file that knows Python. One function per kernel; array types state the contract, sizes are checked here,
// and the GIL is released around every loop.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "core/api.hpp"
#include "core/helper_thread.hpp"
#include "dual/ascent.hpp"
#include "io/duplicate_columns.hpp"
#include "io/labels.hpp"
#include "io/libsvm.hpp"
#include "sums/enclosure.hpp"

namespace nb = nanobind;
using namespace linsep;
using std::int64_t;

namespace {

using In = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Out = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Order = nb::ndarray<int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using In2 = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Out2 = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Planes = nb::ndarray<double, nb::ndim<2>, nb::device::cpu>;  // one row per class, perhaps part of a longer one
using Labels = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class I>
using Indices = nb::ndarray<I, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Values = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Any = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

// The instruction sets, from the plainest to the richest; only those up to the best one may be asked for their Table.
struct Set {
    const char* name;
    Table (*table)();
};
const Set sets[] = {{"base", table_base},
#ifdef LINSEP_X86
                    {"avx2", table_avx2},
                    {"avx512", table_avx512}
#endif
};

int best_set() {
#ifdef LINSEP_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd"))
        return 2;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") &&
        __builtin_cpu_supports("bmi") && __builtin_cpu_supports("f16c") && __builtin_cpu_supports("lzcnt") &&
        __builtin_cpu_supports("movbe"))
        return 1;
#endif
    return 0;
}
const int best = best_set();
Table current = sets[best].table();
const Table* const table = &current;

void need(bool ok, const char* what) {
    if (!ok) throw std::invalid_argument(what);
}

// Whether 0 <= index < bound for all. One of x and bound - 1 - x is negative where that does not hold: an "or" of all of
// them, which every instruction set does on whole vectors, tells by its sign.
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

template <class I>
void check_csr(const I* starts, const I* indices, int64_t n, int64_t d, int64_t nnz) {
    need(n == 0 || starts[0] == 0, "CSR: indptr must begin with 0");
    need(never_falls(starts, n), "CSR: indptr must not decrease");
    need(starts[n] <= nnz, "CSR: indptr ends beyond the stored entries");
    need(all_within(indices, static_cast<int64_t>(starts[n]), d), "CSR: a column index is out of range");
}

// Holds references to the arrays it points into.
struct PyRows {
    Rows rows;
    Any values, indices, starts;

    explicit PyRows(Any x) : values(x) {
        need(x.ndim() == 2, "dense rows need a 2-D array");
        const bool f64 = x.dtype() == nb::dtype<double>(), f32 = x.dtype() == nb::dtype<float>();
        need(f64 || f32, "dense rows are float32 or float64");
        rows = {f64 ? Store::dense64 : Store::dense32,
                static_cast<int64_t>(x.shape(0)),
                static_cast<int64_t>(x.shape(1)),
                x.data(),
                nullptr,
                nullptr};
    }
    PyRows(Any x, Any index, Any start, int64_t d) : values(x), indices(index), starts(start) {
        const bool f64 = x.dtype() == nb::dtype<double>(), f32 = x.dtype() == nb::dtype<float>();
        const bool i32 = index.dtype() == nb::dtype<std::int32_t>(), i64 = index.dtype() == nb::dtype<int64_t>();
        need(f64 || f32, "CSR values are float32 or float64");
        need((i32 || i64) && index.dtype() == start.dtype(), "CSR indices and indptr are both int32 or int64");
        need(x.ndim() == 1 && index.ndim() == 1 && start.ndim() == 1 && start.shape(0) >= 1 && d >= 0,
             "CSR needs three 1-D arrays");
        need(x.shape(0) == index.shape(0), "CSR: data and indices differ in length");
        const Store store = f64 ? (i32 ? Store::csr64i32 : Store::csr64i64) : (i32 ? Store::csr32i32 : Store::csr32i64);
        const int64_t n = static_cast<int64_t>(start.shape(0)) - 1, nnz = static_cast<int64_t>(x.shape(0));
        rows = {store, n, d, x.data(), index.data(), start.data()};
        nb::gil_scoped_release release;
        if (i32)
            check_csr(static_cast<const std::int32_t*>(rows.starts), static_cast<const std::int32_t*>(rows.indices), n,
                      d, nnz);
        else
            check_csr(static_cast<const int64_t*>(rows.starts), static_cast<const int64_t*>(rows.indices), n, d, nnz);
    }
    int64_t n() const { return rows.n; }
    int64_t d() const { return rows.d; }
    void range(int64_t lo, int64_t hi) const { need(0 <= lo && lo <= hi && hi <= rows.n, "rows out of range"); }
};

struct PyTargets {
    In sign;
    std::optional<In> offset, weight;
    Targets view;

    PyTargets(In s, std::optional<In> o, std::optional<In> w) : sign(s), offset(o), weight(w) {
        need(!o || o->shape(0) == s.shape(0), "offset and sign differ in length");
        need(!w || w->shape(0) == s.shape(0), "weight and sign differ in length");
        view = {s.data(), o ? o->data() : nullptr, w ? w->data() : nullptr};
    }
    void match(const PyRows& x) const {
        need(static_cast<int64_t>(sign.shape(0)) == x.n(), "targets and rows differ in length");
    }
};

struct PyLoss {
    LossSpec spec;
    PyLoss(const std::string& name, double width, double centre) : spec{LossId::logistic, {width, centre}} {
        static const char* names[] = {"logistic", "exponential", "squared",  "squared_hinge", "huberised_hinge",
                                      "huber",    "hinge",       "absolute", "perceptron"};
        for (int i = 0; i < 9; ++i)
            if (name == names[i]) {
                spec.id = static_cast<LossId>(i);
                return;
            }
        throw std::invalid_argument("no native loss named '" + name + "'");
    }
};

struct PyClasses {
    Labels label;
    std::optional<In> weight;
    Classes view;

    PyClasses(Labels l, std::optional<In> w, int64_t k) : label(l), weight(w) {
        need(k >= 2, "at least two classes are needed");
        need(!w || w->shape(0) == l.shape(0), "weight and labels differ in length");
        for (std::size_t i = 0; i < l.shape(0); ++i) need(0 <= l(i) && l(i) < k, "labels are 0 .. k - 1");
        view = {l.data(), w ? w->data() : nullptr, k};
    }
    int64_t padded() const { return padded_classes(view.k); }
    void match(const PyRows& x) const {
        need(static_cast<int64_t>(label.shape(0)) == x.n(), "labels and rows differ in length");
    }
    void match(const Planes& p) const {
        need(static_cast<int64_t>(p.shape(0)) == view.k && p.shape(1) == label.shape(0) && p.stride(1) == 1,
             "probabilities have a contiguous plane of n entries per class");
    }
};

void matrix_of(const In2& a, int64_t rows, int64_t columns, const char* what) {
    need(static_cast<int64_t>(a.shape(0)) == rows && static_cast<int64_t>(a.shape(1)) == columns, what);
}
void vector_of(const In& v, int64_t size, const char* what) { need(static_cast<int64_t>(v.shape(0)) == size, what); }
void vector_of(const Out& v, int64_t size, const char* what) { need(static_cast<int64_t>(v.shape(0)) >= size, what); }

std::unique_ptr<double[]> scratch(int64_t size) {
    return std::unique_ptr<double[]>(new double[static_cast<std::size_t>(size)]);
}

void sweep(const PyRows& x, const PyTargets& t, const PyLoss& l, int64_t lo, int64_t hi, In theta, Out out,
           std::optional<Out> curvature, bool gradient, double blend) {
    x.range(lo, hi);
    t.match(x);
    vector_of(theta, x.d() + 1, "theta has d + 1 entries");
    vector_of(out, gradient ? x.d() + 2 : 1, "out has d + 2 entries");
    if (curvature) vector_of(*curvature, x.n(), "curvature has n entries");
    nb::gil_scoped_release release;
    table->sweep(x.rows, lo, hi, t.view, l.spec, theta.data(), out.data(), curvature ? curvature->data() : nullptr,
                 gradient, blend);
}

void closing(const PyRows& x, const PyTargets& t, const PyLoss& l, int64_t lo, int64_t hi, In base, In step, In theta,
             std::optional<In> dual, Out out, std::optional<Out> found) {
    x.range(lo, hi);
    t.match(x);
    vector_of(base, x.d() + 1, "base has d + 1 entries");
    vector_of(step, x.d() + 1, "step has d + 1 entries");
    vector_of(theta, x.d() + 1, "theta has d + 1 entries");
    if (dual) vector_of(*dual, x.n(), "dual has n entries");
    if (found) vector_of(*found, x.n(), "found has n entries");
    vector_of(out, 8 + 2 * x.d(), "out has 8 + 2 d entries");
    nb::gil_scoped_release release;
    const auto room = scratch(x.d() + 1);
    table->closing(x.rows, lo, hi, t.view, l.spec, base.data(), step.data(), theta.data(),
                   dual ? dual->data() : nullptr, out.data(), room.get(), found ? found->data() : nullptr);
}

void gram(const PyRows& x, int64_t lo, int64_t hi, In h, In mu, Out out, bool single) {
    x.range(lo, hi);
    vector_of(h, x.n(), "h has n entries");
    vector_of(mu, x.d(), "mu has d entries");
    vector_of(out, (x.d() + 1) * (x.d() + 1), "out has (d + 1)^2 entries");
    nb::gil_scoped_release release;
    const auto pack = scratch(gram_scratch(x.rows));
    (single ? table->gram_single : table->gram)(x.rows, lo, hi, h.data(), mu.data(), out.data(), pack.get());
}

void hess_vec(const PyRows& x, int64_t lo, int64_t hi, In h, In v, Out out) {
    x.range(lo, hi);
    vector_of(h, x.n(), "h has n entries");
    vector_of(v, x.d() + 1, "v has d + 1 entries");
    vector_of(out, x.d() + 1, "out has d + 1 entries");
    nb::gil_scoped_release release;
    table->hess_vec(x.rows, lo, hi, h.data(), v.data(), out.data());
}

void combine(const PyRows& x, int64_t lo, int64_t hi, In a, Out out) {
    x.range(lo, hi);
    vector_of(a, x.n(), "a has n entries");
    vector_of(out, x.d() + 1, "out has d + 1 entries");
    nb::gil_scoped_release release;
    table->combine(x.rows, lo, hi, a.data(), out.data());
}

void moments(const PyRows& x, int64_t lo, int64_t hi, std::optional<In> h, Out out) {
    x.range(lo, hi);
    if (h) vector_of(*h, x.n(), "h has n entries");
    vector_of(out, 2 * x.d() + 1, "out has 2 d + 1 entries");
    nb::gil_scoped_release release;
    table->moments(x.rows, lo, hi, h ? h->data() : nullptr, out.data());
}

// Whether all scores are finite.
bool scores(const PyRows& x, int64_t lo, int64_t hi, In theta, Out z) {
    x.range(lo, hi);
    vector_of(theta, x.d() + 1, "theta has d + 1 entries");
    vector_of(z, hi - lo, "z has an entry per row");
    nb::gil_scoped_release release;
    return table->scores(x.rows, lo, hi, theta.data(), z.data()) == 0.0;
}

bool sigmoids(const PyRows& x, int64_t lo, int64_t hi, In theta, Out2 p) {
    x.range(lo, hi);
    vector_of(theta, x.d() + 1, "theta has d + 1 entries");
    need(static_cast<int64_t>(p.shape(0)) == hi - lo && p.shape(1) == 2, "p has a row of two per row");
    nb::gil_scoped_release release;
    return table->sigmoids(x.rows, lo, hi, theta.data(), p.data()) == 0.0;
}

bool softmaxes(const PyRows& x, int64_t lo, int64_t hi, In2 W, Out2 p) {
    x.range(lo, hi);
    const int64_t k = static_cast<int64_t>(p.shape(1));
    need(k >= 1 && static_cast<int64_t>(p.shape(0)) == hi - lo, "p has a row of k per row");
    matrix_of(W, x.d() + 1, padded_classes(k), "W has d + 1 rows, and its columns padded to a multiple of 8");
    nb::gil_scoped_release release;
    const auto room = scratch(256 * padded_classes(k));
    return table->softmaxes(x.rows, lo, hi, W.data(), k, p.data(), room.get()) == 0.0;
}

void reaches(const PyRows& x, int64_t lo, int64_t hi, In theta, Out z) {
    x.range(lo, hi);
    vector_of(theta, x.d() + 1, "theta has d + 1 entries");
    vector_of(z, hi - lo, "z has an entry per row");
    nb::gil_scoped_release release;
    table->reaches(x.rows, lo, hi, theta.data(), z.data());
}

void ray(const PyRows& x, const PyTargets& t, const PyLoss& l, int64_t lo, int64_t hi, In theta, In delta, In steps,
         Out out) {
    x.range(lo, hi);
    t.match(x);
    vector_of(theta, x.d() + 1, "theta has d + 1 entries");
    vector_of(delta, x.d() + 1, "delta has d + 1 entries");
    vector_of(out, 2 * static_cast<int64_t>(steps.shape(0)), "out has two entries per step");
    nb::gil_scoped_release release;
    table->ray(x.rows, lo, hi, t.view, l.spec, theta.data(), delta.data(), steps.data(),
               static_cast<int64_t>(steps.shape(0)), out.data());
}

void row_norms(const PyRows& x, int64_t lo, int64_t hi, Out norms) {
    x.range(lo, hi);
    vector_of(norms, x.n(), "norms has n entries");
    nb::gil_scoped_release release;
    table->row_norms(x.rows, lo, hi, norms.data());
}

void pointwise(const PyLoss& l, In m, Out value, Out slope, Out curvature, Out conjugate) {
    const int64_t n = static_cast<int64_t>(m.shape(0));
    for (const Out* o : {&value, &slope, &curvature, &conjugate}) vector_of(*o, n, "outputs have n entries");
    table->pointwise(l.spec, n, m.data(), value.data(), slope.data(), curvature.data(), conjugate.data());
}

double spd_solve(nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu> A, In b, bool drop, Out x) {
    const int64_t n = static_cast<int64_t>(A.shape(0));
    need(static_cast<int64_t>(A.shape(1)) == n, "A is square");
    vector_of(b, n, "b has an entry per row of A");
    vector_of(x, n, "x has an entry per row of A");
    nb::gil_scoped_release release;
    const auto room = scratch(n * (n + 2));
    return table->spd_solve(n, A.data(), b.data(), drop, x.data(), room.get());
}

double spd_factor(In2 A, bool drop, Out2 U, Out scale) {
    const int64_t n = static_cast<int64_t>(A.shape(0));
    matrix_of(A, n, n, "A is square");
    need(static_cast<int64_t>(U.shape(0)) == n && static_cast<int64_t>(U.shape(1)) == n, "U is as large as A");
    vector_of(scale, n, "scale has an entry per row of A");
    nb::gil_scoped_release release;
    return table->spd_factor(n, A.data(), drop, U.data(), scale.data());
}

void spd_apply(In2 U, In scale, In b, Out x) {
    const int64_t n = static_cast<int64_t>(U.shape(0));
    matrix_of(U, n, n, "U is square");
    vector_of(scale, n, "scale has an entry per row of U");
    vector_of(b, n, "b has an entry per row of U");
    vector_of(x, n, "x has an entry per row of U");
    nb::gil_scoped_release release;
    table->spd_apply(n, U.data(), scale.data(), b.data(), x.data());
}

// x is the start and becomes the answer, r its residual. Returns status and steps.
std::tuple<int, int> nnls(nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu> A, In f, double tol,
                          int max_steps, Out x, Out r) {
    const int64_t m = static_cast<int64_t>(A.shape(0)), p = static_cast<int64_t>(A.shape(1));
    vector_of(f, p, "f has an entry per column of A");
    vector_of(x, m, "x has an entry per row of A");
    vector_of(r, p, "r has an entry per column of A");
    nb::gil_scoped_release release;
    const auto room = scratch(nnls_scratch(m, p));
    const NewtonReport found = table->nnls(m, p, A.data(), f.data(), tol, max_steps, x.data(), r.data(), room.get());
    return {found.status, found.steps};
}

// Whether all stored numbers are finite.
bool all_finite(const PyRows& x) {
    nb::gil_scoped_release release;
    return table->not_finite(x.rows) == 0.0;
}

// Rows where the smaller and the larger of two labels occur first, or -1, -1 if there are not just two labels (or the type
// of y is none of the usual ones); sign becomes -1 and +1.
template <class I>
using Columns = nb::ndarray<const I, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Every index is checked before it is followed.
template <class I>
bool csr_repeats(Columns<I> indices, Columns<I> indptr, int64_t d) {
    const int64_t n = static_cast<int64_t>(indptr.shape(0)) - 1;
    need(n >= 0 && n < (int64_t{1} << 31) && d >= 0, "indptr has n + 1 entries");
    nb::gil_scoped_release release;
    need(indptr.data()[0] >= 0 && indptr.data()[n] <= static_cast<int64_t>(indices.shape(0)), "indptr out of range");
    for (int64_t i = 0; i < n; ++i) need(indptr.data()[i] <= indptr.data()[i + 1], "indptr falls");
    for (int64_t p = indptr.data()[0]; p < indptr.data()[n]; ++p)
        need(0 <= indices.data()[p] && indices.data()[p] < d, "column index out of range");
    return repeats(indices.data(), indptr.data(), n, d);
}

std::tuple<int64_t, int64_t> two_classes(Any y, Out sign) {
    need(y.ndim() == 1, "y is a vector");
    const int64_t n = static_cast<int64_t>(y.shape(0));
    vector_of(sign, n, "sign has an entry per label");
    nb::gil_scoped_release release;
    TwoClasses found{-1, -1};
    if (y.dtype() == nb::dtype<double>())
        found = find_two(static_cast<const double*>(y.data()), n, sign.data());
    else if (y.dtype() == nb::dtype<int64_t>())
        found = find_two(static_cast<const int64_t*>(y.data()), n, sign.data());
    else if (y.dtype() == nb::dtype<std::int32_t>())
        found = find_two(static_cast<const std::int32_t*>(y.data()), n, sign.data());
    else if (y.dtype() == nb::dtype<bool>() || y.dtype() == nb::dtype<std::int8_t>())
        found = find_two(static_cast<const std::int8_t*>(y.data()), n, sign.data());
    return {found.low, found.high};
}

// theta is the start and becomes the answer; base, step and sums describe the dual point.
std::tuple<int, int, int, int, double, double> newton(const PyRows& x, const PyTargets& t, const PyLoss& l, double lam,
                                                      double tol, int max_steps, bool intercept, bool polish, bool two,
                                                      Out theta, Out base, Out step, Out sums) {
    t.match(x);
    for (const Out* o : {&theta, &base, &step}) vector_of(*o, x.d() + 1, "theta, base, step have d + 1 entries");
    vector_of(sums, 8 + 2 * x.d(), "sums has 8 + 2 d entries");
    nb::gil_scoped_release release;
    const auto room = scratch(newton_scratch(x.rows));
    HelperThread thread(two);
    const NewtonJob job{lam, tol, max_steps, intercept, polish, thread.helper()};
    const NewtonReport r =
        table->newton(x.rows, t.view, l.spec, job, theta.data(), base.data(), step.data(), sums.data(), room.get());
    return {r.status, r.steps, r.sweeps, r.grams, r.primal, r.dual};
}

// Whether the pointers of a CSR or CSC matrix begin with 0, never fall and end within what is stored, and all indices
// are below the bound: who finds out that they do not says where, in Python.
bool sound(Any starts, Any indices, int64_t bound) {
    const bool i32 = indices.dtype() == nb::dtype<std::int32_t>();
    need(starts.ndim() == 1 && indices.ndim() == 1 && starts.shape(0) >= 1, "indptr and indices are 1-D arrays");
    need((i32 || indices.dtype() == nb::dtype<int64_t>()) && starts.dtype() == indices.dtype(),
         "indptr and indices are both int32 or int64");
    const auto check = [&]<class I>(const I* p, const I* x) {
        const int64_t n = static_cast<int64_t>(starts.shape(0)) - 1, stored = static_cast<int64_t>(indices.shape(0));
        return p[0] == 0 && never_falls(p, n) && p[n] <= stored && all_within(x, static_cast<int64_t>(p[n]), bound);
    };
    if (i32)
        return check(static_cast<const std::int32_t*>(starts.data()), static_cast<const std::int32_t*>(indices.data()));
    return check(static_cast<const int64_t*>(starts.data()), static_cast<const int64_t*>(indices.data()));
}

std::tuple<double, double, double> enclosed(In sums, In theta, double lam, bool intercept, double rows) {
    const int64_t d = static_cast<int64_t>(theta.shape(0)) - 1;
    need(d >= 0 && static_cast<int64_t>(sums.shape(0)) == 8 + 2 * d, "sums has 8 + 2 d entries, theta has d + 1");
    const Enclosure e = enclosure(sums.data(), theta.data(), d, lam, intercept, rows);
    return {e.primal, e.bound, e.rounding};
}

void kinked(const PyLoss& l) {
    need(l.spec.id == LossId::hinge || l.spec.id == LossId::absolute || l.spec.id == LossId::perceptron,
         "this method takes the hinge, absolute and perceptron losses");
}

void kink_margins(const PyRows& x, const PyTargets& t, const PyLoss& l, int64_t lo, int64_t hi, In theta, Out v,
                  Out out) {
    x.range(lo, hi);
    t.match(x);
    kinked(l);
    vector_of(theta, x.d() + 1, "theta has d + 1 entries");
    vector_of(v, x.n(), "v has n entries");
    vector_of(out, 1, "out has an entry");
    nb::gil_scoped_release release;
    table->kink_margins(x.rows, lo, hi, t.view, l.spec, theta.data(), v.data(), out.data());
}

void sort_rows(const PyRows& x, const PyTargets& t, const PyLoss& l, int64_t lo, int64_t hi, In theta, double tau,
               In mu, In scale, Out v, Out u, Out out) {
    x.range(lo, hi);
    t.match(x);
    kinked(l);
    vector_of(theta, x.d() + 1, "theta has d + 1 entries");
    vector_of(v, x.n(), "v has n entries");
    vector_of(mu, x.d(), "mu has d entries");
    vector_of(scale, x.d(), "scale has d entries");
    vector_of(u, x.n(), "u has n entries");
    vector_of(out, 1 + 2 * (x.d() + 2), "out has 2 d + 5 entries");
    nb::gil_scoped_release release;
    table->sort_rows(x.rows, lo, hi, t.view, l.spec, theta.data(), tau, mu.data(), scale.data(), v.data(), u.data(),
                     out.data());
}

// The state of the rows: `kPlanes` planes, row `first` of which is row 0 of the rows.
double* state_of(const Planes& state, int64_t first, int64_t n) {
    need(static_cast<int64_t>(state.shape(0)) == kPlanes && state.stride(1) == 1, "the state has 10 contiguous planes");
    need(first >= 0 && first + n <= static_cast<int64_t>(state.shape(1)), "the state has a column per row");
    return state.data() + first;
}

void ipm_central(const PyLoss& l, int64_t lo, int64_t hi, double mu, Planes state) {
    kinked(l);
    need(0 <= lo && lo <= hi, "rows out of range");
    double* s = state_of(state, 0, hi);
    nb::gil_scoped_release release;
    table->ipm_central(lo, hi, l.spec, mu, s, state.stride(0));
}

void ipm_gather(const PyRows& x, const PyTargets& t, const PyLoss& l, int64_t lo, int64_t hi, double step, Planes state,
                int64_t first, Out h, Out out) {
    x.range(lo, hi);
    t.match(x);
    kinked(l);
    double* s = state_of(state, first, x.n());
    vector_of(h, x.n(), "h has n entries");
    vector_of(out, 3 + 2 * (x.d() + 1), "out has 2 d + 5 entries");
    nb::gil_scoped_release release;
    table->ipm_gather(x.rows, lo, hi, t.view, l.spec, step, s, state.stride(0), h.data(), out.data());
}

double ipm_predict(const PyRows& x, const PyTargets& t, int64_t lo, int64_t hi, In delta, Planes state, int64_t first,
                   Out out) {
    x.range(lo, hi);
    t.match(x);
    vector_of(delta, x.d() + 1, "delta has d + 1 entries");
    double* s = state_of(state, first, x.n());
    vector_of(out, 1 + 2 * (x.d() + 1), "out has 2 d + 3 entries");
    nb::gil_scoped_release release;
    return table->ipm_predict(x.rows, lo, hi, t.view, delta.data(), s, state.stride(0), out.data());
}

double ipm_correct(const PyRows& x, const PyTargets& t, int64_t lo, int64_t hi, In delta, double mu, Planes state,
                   int64_t first) {
    x.range(lo, hi);
    t.match(x);
    vector_of(delta, x.d() + 1, "delta has d + 1 entries");
    double* s = state_of(state, first, x.n());
    nb::gil_scoped_release release;
    return table->ipm_correct(x.rows, lo, hi, t.view, delta.data(), mu, s, state.stride(0));
}

void ipm_recentre(const PyRows& x, const PyTargets& t, int64_t lo, int64_t hi, double step, double mu, Planes state,
                  int64_t first, Out out) {
    x.range(lo, hi);
    t.match(x);
    vector_of(out, x.d() + 1, "out has d + 1 entries");
    double* s = state_of(state, first, x.n());
    nb::gil_scoped_release release;
    table->ipm_recentre(x.rows, lo, hi, t.view, step, mu, s, state.stride(0), out.data());
}

double ipm_attempt(const PyRows& x, const PyTargets& t, int64_t lo, int64_t hi, In delta, double step, double mu,
                   Planes state, int64_t first) {
    x.range(lo, hi);
    t.match(x);
    vector_of(delta, x.d() + 1, "delta has d + 1 entries");
    double* s = state_of(state, first, x.n());
    nb::gil_scoped_release release;
    return table->ipm_attempt(x.rows, lo, hi, t.view, delta.data(), step, mu, s, state.stride(0));
}

void ipm_adopt(const PyRows& x, const PyTargets& t, int64_t lo, int64_t hi, double step, double mu, Planes state,
               int64_t first) {
    x.range(lo, hi);
    t.match(x);
    double* s = state_of(state, first, x.n());
    nb::gil_scoped_release release;
    table->ipm_adopt(lo, hi, t.view, step, mu, s, state.stride(0));
}

// From theta, u and the margins v near the optimum to the optimum itself; says whether it was found.
bool crossover(const PyRows& x, const PyTargets& t, const PyLoss& l, double lam, bool intercept,
               std::optional<In> linear, int rounds, Out theta, Out u, Out v) {
    t.match(x);
    kinked(l);
    if (linear) vector_of(*linear, x.d() + 1, "the linear term has d + 1 entries");
    vector_of(theta, x.d() + 1, "theta has d + 1 entries");
    vector_of(u, x.n(), "u has n entries");
    vector_of(v, x.n(), "v has n entries");
    nb::gil_scoped_release release;
    const auto room = scratch(crossover_scratch(x.rows));
    return table->crossover(x.rows, t.view, l.spec, lam, intercept, linear ? linear->data() : nullptr, rounds,
                            theta.data(), u.data(), v.data(), room.get()) != 0;
}

void make_feasible(const PyTargets& t, const PyLoss& l, bool intercept, Out u) {
    kinked(l);
    const int64_t n = static_cast<int64_t>(t.sign.shape(0));
    vector_of(u, n, "u has n entries");
    nb::gil_scoped_release release;
    table->make_feasible(n, t.view, l.spec, intercept, u.data());
}

// theta is the start and becomes the answer; u and sums describe its dual point.
std::tuple<int, int, int, int, bool> interior(const PyRows& x, const PyTargets& t, const PyLoss& l, double lam,
                                              double tol, int max_steps, bool intercept, bool warm, Out theta, Out u,
                                              Out sums) {
    t.match(x);
    kinked(l);
    vector_of(theta, x.d() + 1, "theta has d + 1 entries");
    vector_of(u, x.n(), "u has n entries");
    vector_of(sums, 8 + 2 * x.d(), "sums has 8 + 2 d entries");
    nb::gil_scoped_release release;
    const auto room = scratch(interior_scratch(x.rows));
    const InteriorReport r = table->interior(x.rows, t.view, l.spec, {lam, tol, max_steps, intercept, warm},
                                             theta.data(), u.data(), sums.data(), room.get());
    return {r.status, r.steps, r.sweeps, r.grams, r.exact != 0};
}

// Visits the buckets order[k0 .. k1) of `bucket` entries of the list each (of all rows, if there is none); moves u, z, b,
// theta = (w, b0), state = (e, slack, largest slope, f). Entries of the list below 0 have left it.
void dual_cd(const PyRows& x, const PyTargets& t, const PyLoss& l, int64_t k0, int64_t k1, Order order, int64_t bucket,
             std::optional<Order> rows, double far, double lam, double stiffness, In norms, Out u, Out z, Out b,
             Out theta, Out state, std::optional<In> along, double centre, bool two) {
    t.match(x);
    need(l.spec.id != LossId::exponential, "the exponential loss has no dual step");
    need(bucket >= 1 && lam > 0.0 && stiffness >= 0.0, "bucket and lam are positive, stiffness is not negative");
    need(0 <= k0 && k0 <= k1 && k1 <= static_cast<int64_t>(order.shape(0)), "buckets out of range");
    const int64_t count = rows ? static_cast<int64_t>(rows->shape(0)) : x.n();
    for (int64_t k = k0; k < k1; ++k)
        need(order.data()[k] >= 0 && order.data()[k] <= (count - 1) / bucket, "order names a bucket beyond the rows");
    for (int64_t k = 0; rows && k < count; ++k) need(rows->data()[k] < x.n(), "list names a row beyond the rows");
    vector_of(norms, x.n(), "norms has n entries");
    vector_of(u, x.n(), "u has n entries");
    vector_of(z, x.n(), "z has n entries");
    vector_of(b, x.n(), "b has n entries");
    vector_of(theta, x.d() + 1, "theta has d + 1 entries");
    vector_of(state, 4, "state has four entries");
    if (along) vector_of(*along, x.n(), "along has n entries");
    nb::gil_scoped_release release;
    const double infinite = std::numeric_limits<double>::infinity();
    HelperThread thread(two);
    const CdJob job{lam,
                    stiffness,
                    order.data(),
                    bucket,
                    rows ? rows->data() : nullptr,
                    count,
                    rows ? far : infinite,
                    along ? along->data() : nullptr,
                    along ? centre : 0.0,
                    thread.helper()};
    table->dual_cd(x.rows, k0, k1, t.view, l.spec, job, norms.data(), u.data(), z.data(), b.data(), theta.data(),
                   state.data());
}

// Holds what it reads. Arrays that it hands out are its own memory: they live as long as it does.
struct PyAscent {
    PyRows rows;
    PyTargets targets;
    std::unique_ptr<Ascent> self;

    PyAscent(const PyRows& x, const PyTargets& t, const PyLoss& l, In theta, double lam, double tol, bool intercept,
             bool two, std::uint64_t seed, double large, double leave)
        : rows(x), targets(t) {
        t.match(x);
        need(l.spec.id != LossId::exponential && l.spec.id != LossId::perceptron, "this loss has no dual step");
        need(lam > 0.0, "lam is positive");
        need(x.n() < (int64_t{1} << 31), "too many rows to shuffle");
        vector_of(theta, x.d() + 1, "theta has d + 1 entries");
        const AscentJob job{x.rows, t.view, l.spec, lam, tol, intercept, two, seed, large, leave};
        nb::gil_scoped_release release;
        self = std::make_unique<Ascent>(*table, job, theta.data());
    }
    int advance(double entries, double limit) {
        nb::gil_scoped_release release;
        return static_cast<int>(self->advance(entries, limit));
    }
    void missed(double gap) {
        nb::gil_scoped_release release;
        self->missed(gap);
    }
    void halt() { self->halt(); }
    void epoch() { self->epoch(); }
    void improve() { self->improve(); }
    void point(Out theta, Out u) {
        vector_of(theta, rows.d() + 1, "theta has d + 1 entries");
        vector_of(u, rows.n(), "u has n entries");
        nb::gil_scoped_release release;
        self->point(theta.data(), u.data());
    }
    void restart(In u, double b) {
        vector_of(u, rows.n(), "u has n entries");
        nb::gil_scoped_release release;
        self->restart(u.data(), b);
    }
    std::optional<std::tuple<double, double, double, bool>> class_start() const {
        const ClassStart* found = self->class_start();
        if (!found) return std::nullopt;
        return std::tuple(found->plus, found->minus, found->dual, found->near);
    }
};
double mean_of_some(const PyRows& x, const PyTargets& t) {
    t.match(x);
    return sampled_mean(*table, x.rows, t.view);
}
std::tuple<double, double> values_of(In sums, In theta, double lam, bool intercept) {
    const int64_t d = static_cast<int64_t>(theta.shape(0)) - 1;
    need(d >= 0 && lam > 0.0, "theta has d + 1 entries, lam is positive");
    need(static_cast<int64_t>(sums.shape(0)) == 8 + 2 * d, "sums has 8 + 2 d entries");
    const ClosedValues found = closed_values(sums.data(), theta.data(), d, lam, intercept);
    return {found.primal, found.dual};
}
template <std::vector<double> Ascent::* member>
nb::ndarray<nb::numpy, double, nb::ndim<1>> array_of(PyAscent& ascent) {
    std::vector<double>& values = (*ascent.self).*member;
    return {values.data(), {values.size()}, nb::find(ascent)};
}
template <class T, T Ascent::* member>
T number_of(const PyAscent& ascent) {
    return (*ascent.self).*member;
}

void class_sums(const PyRows& x, const PyTargets& t, int64_t lo, int64_t hi, Out norms, Out out) {
    x.range(lo, hi);
    t.match(x);
    vector_of(norms, x.n(), "norms has n entries");
    vector_of(out, 2 * x.d(), "out has 2 d entries");
    nb::gil_scoped_release release;
    table->class_sums(x.rows, lo, hi, t.view, norms.data(), out.data());
}

void two_scores(const PyRows& x, int64_t lo, int64_t hi, In a, In b, Out za, Out zb) {
    x.range(lo, hi);
    need(static_cast<int64_t>(a.shape(0)) >= x.d() && static_cast<int64_t>(b.shape(0)) >= x.d(),
         "a and b have d entries");
    vector_of(za, x.n(), "za has n entries");
    vector_of(zb, x.n(), "zb has n entries");
    nb::gil_scoped_release release;
    const auto pairs = scratch(2 * x.d());
    for (int64_t j = 0; j < x.d(); ++j) pairs[2 * j] = a.data()[j], pairs[2 * j + 1] = b.data()[j];
    table->two_scores(x.rows, lo, hi, a.data(), b.data(), pairs.get(), za.data(), zb.data());
}

// The rows that have not left the list, moved to its front; their number.
int64_t remaining(Order rows) { return table->remaining(static_cast<int64_t>(rows.shape(0)), rows.data()); }

std::tuple<double, double> best_intercept(const PyTargets& t, const PyLoss& l, bool free, In z, double b, double reach,
                                          double fine) {
    const int64_t n = static_cast<int64_t>(t.sign.shape(0));
    vector_of(z, n, "z has n entries");
    nb::gil_scoped_release release;
    const auto room = scratch(4 * n + 32);
    const Settled found = table->best_intercept(n, t.view, l.spec, free, z.data(), b, reach, fine, room.get());
    return {found.b, found.loss};
}

// The same for the rows of the list alone; e is the sum of s sign u over all rows.
std::tuple<double, double> best_among(const PyTargets& t, const PyLoss& l, bool free, Labels list, In z, In u, double e,
                                      double b, double reach, double fine) {
    const int64_t n = static_cast<int64_t>(t.sign.shape(0)), count = static_cast<int64_t>(list.shape(0));
    vector_of(z, n, "z has n entries");
    vector_of(u, n, "u has n entries");
    for (int64_t k = 0; k < count; ++k) need(0 <= list.data()[k] && list.data()[k] < n, "list names a row beyond n");
    nb::gil_scoped_release release;
    const auto room = scratch(8 * count + 32);
    const Settled found =
        table->best_among(list.data(), count, t.view, l.spec, free, z.data(), u.data(), e, b, reach, fine, room.get());
    return {found.b, found.loss};
}

// Shuffles the entries of the order, which are places in the list (or rows, if there is none).
void arrange(const PyRows& x, Order order, std::uint64_t seed, std::optional<Labels> list) {
    const int64_t count = static_cast<int64_t>(order.shape(0));
    const int64_t places = list ? static_cast<int64_t>(list->shape(0)) : x.n();
    need(count < (int64_t{1} << 31), "too many entries to shuffle");
    for (int64_t k = 0; k < count; ++k)
        need(0 <= order.data()[k] && order.data()[k] < places, "order names a place beyond the list");
    for (int64_t k = 0; list && k < places; ++k)
        need(0 <= list->data()[k] && list->data()[k] < x.n(), "list names a row beyond the rows");
    nb::gil_scoped_release release;
    int64_t spare[256];
    table->arrange(x.rows, count, list ? list->data() : nullptr, seed, order.data(), spare);
}

void balance(const PyTargets& t, const PyLoss& l, In z, In seen, Out u) {
    const int64_t n = static_cast<int64_t>(t.sign.shape(0));
    vector_of(z, n, "z has n entries");
    vector_of(seen, n, "seen has n entries");
    vector_of(u, n, "u has n entries");
    nb::gil_scoped_release release;
    const auto room = scratch(2 * n + 1);
    table->balance(n, t.view, l.spec, z.data(), seen.data(), u.data(), room.get());
}

void shifted(const PyTargets& t, const PyLoss& l, int64_t lo, int64_t hi, In z, double b, Out out) {
    const int64_t n = static_cast<int64_t>(t.sign.shape(0));
    need(0 <= lo && lo <= hi && hi <= n, "rows out of range");
    vector_of(z, n, "z has n entries");
    vector_of(out, 3, "out has three entries");
    nb::gil_scoped_release release;
    table->shifted(lo, hi, t.view, l.spec, z.data(), b, out.data());
}

void in_range(Labels a, int64_t lo, int64_t hi, const char* what) {
    for (std::size_t i = 0; i < a.shape(0); ++i) need(lo <= a.data()[i] && a.data()[i] < hi, what);
}

// The caller has checked part once (0 .. parts - 1, or -1): it is as long as the data.
void part_sweep(const PyRows& x, const PyTargets& t, const PyLoss& l, int64_t lo, int64_t hi, Labels part,
                int64_t parts, In theta, Out out, Out curvature, std::optional<Out> moments) {
    x.range(lo, hi);
    t.match(x);
    need(static_cast<int64_t>(part.shape(0)) == x.n(), "part has n entries");
    vector_of(theta, x.d() + 1, "theta has d + 1 entries");
    vector_of(out, (parts + 1) * (x.d() + 2), "out has (parts + 1)(d + 2) entries");
    vector_of(curvature, x.n(), "curvature has n entries");
    if (moments) vector_of(*moments, (parts + 1) * (x.d() + 1), "moments has (parts + 1)(d + 1) entries");
    double* more = moments ? moments->data() : nullptr;
    nb::gil_scoped_release release;
    table->part_sweep(x.rows, lo, hi, t.view, l.spec, part.data(), parts, theta.data(), out.data(), curvature.data(),
                      more);
}

void part_gram(const PyRows& x, int64_t lo, int64_t hi, Labels part, int64_t parts, In h, In mu, Out out, bool single) {
    x.range(lo, hi);
    need(static_cast<int64_t>(part.shape(0)) == x.n(), "part has n entries");
    vector_of(h, x.n(), "h has n entries");
    vector_of(mu, x.d(), "mu has d entries");
    vector_of(out, (parts + 1) * (x.d() + 1) * (x.d() + 1), "out has parts + 1 matrices of order d + 1");
    nb::gil_scoped_release release;
    const auto room = scratch(hi - lo + gram_scratch(x.rows));
    table->part_gram(x.rows, lo, hi, part.data(), parts, h.data(), mu.data(), single, out.data(), room.get());
}

void grid_closing(const PyRows& x, const PyTargets& t, const PyLoss& l, int64_t lo, int64_t hi, Labels part, In2 bases,
                  In2 steps, Labels base_of, Labels part_of, In2 reach, std::optional<Out2> held, Labels slot_of,
                  Out out) {
    x.range(lo, hi);
    t.match(x);
    const int64_t d = x.d(), K = static_cast<int64_t>(steps.shape(1)), Kb = static_cast<int64_t>(bases.shape(1));
    const int64_t models = static_cast<int64_t>(base_of.shape(0));
    const int64_t slots = held ? static_cast<int64_t>(held->shape(1)) : 0;
    need(K % 8 == 0 && Kb % 8 == 0 && models <= K, "bases and steps have their columns padded to a multiple of 8");
    matrix_of(bases, d + 1, Kb, "bases has d + 1 rows");
    matrix_of(steps, d + 1, K, "steps has d + 1 rows");
    matrix_of(reach, models, 2, "reach has two entries per model");
    need(static_cast<int64_t>(part.shape(0)) == x.n(), "part has n entries");
    need(static_cast<int64_t>(part_of.shape(0)) == models && static_cast<int64_t>(slot_of.shape(0)) == models,
         "base_of, part_of and slot_of have an entry per model");
    in_range(base_of, 0, Kb, "a model names a base that is not there");
    if (held) {
        need(static_cast<int64_t>(held->shape(0)) == x.n(), "held has n rows");
        in_range(slot_of, 0, slots, "a model names a column of held that is not there");
    }
    vector_of(out, (9 + 2 * d) * K, "out has (9 + 2 d) entries per padded model");
    in_range(part_of, -1, x.n() + 1, "a model is trained without a part that cannot be");
    int64_t parts = 0;
    for (int64_t q = 0; q < models; ++q) parts = std::max(parts, part_of.data()[q] + 1);
    nb::gil_scoped_release release;
    const GridJob job{part.data(),
                      parts,
                      models,
                      Kb,
                      K,
                      bases.data(),
                      steps.data(),
                      base_of.data(),
                      part_of.data(),
                      reach.data(),
                      held ? held->data() : nullptr,
                      slots,
                      slot_of.data()};
    const auto room = scratch(grid_scratch(job, d));
    const auto lists = std::make_unique<int64_t[]>(static_cast<std::size_t>(grid_lists(job, hi - lo)));
    table->grid_closing(x.rows, lo, hi, t.view, l.spec, job, out.data(), room.get(), lists.get());
}

// x and slope (the gradient of the quadratic at x) are moved to the minimum.
int64_t quadratic_cd(In2 S, double l1, double tol, int64_t max_sweeps, Out x, Out slope) {
    const int64_t k = static_cast<int64_t>(S.shape(0));
    matrix_of(S, k, k, "S is square");
    vector_of(x, k, "x has an entry per row of S");
    vector_of(slope, k, "slope has an entry per row of S");
    need(l1 >= 0.0 && tol >= 0.0, "l1 and tol are not negative");
    nb::gil_scoped_release release;
    return table->quadratic_cd(k, S.data(), l1, tol, max_sweeps, x.data(), slope.data());
}

// theta is the start and becomes the answer; base, step and sums describe the dual point.
std::tuple<int, int, int, int, double, double> lasso_newton(const PyRows& x, const PyTargets& t, const PyLoss& l,
                                                            double l1, double l2, double tol, int max_steps,
                                                            bool intercept, Out theta, Out base, Out step, Out sums) {
    t.match(x);
    need(l1 > 0.0 && l2 >= 0.0 && tol > 0.0, "l1 and tol are positive, l2 is not negative");
    for (const Out* o : {&theta, &base, &step}) vector_of(*o, x.d() + 1, "theta, base, step have d + 1 entries");
    vector_of(sums, 8 + 2 * x.d(), "sums has 8 + 2 d entries");
    nb::gil_scoped_release release;
    const auto room = scratch(lasso_scratch(x.rows));
    const auto lists = std::make_unique<int64_t[]>(static_cast<std::size_t>(2 * x.d() + 1));
    const NewtonReport r =
        table->lasso_newton(x.rows, t.view, l.spec, {l1, l2, tol, intercept, max_steps}, theta.data(), base.data(),
                            step.data(), sums.data(), room.get(), lists.get());
    return {r.status, r.steps, r.sweeps, r.grams, r.primal, r.dual};
}

nb::tuple column_newton(const PyRows& x, const PyTargets& t, const PyLoss& l, Labels list, double l1, double l2,
                        double tol, int max_steps, bool intercept, Out theta, Out z, Out base, Out step) {
    const int64_t count = static_cast<int64_t>(list.shape(0)), n = x.d();
    for (int64_t a = 0; a < count; ++a)
        need(list.data()[a] >= 0 && list.data()[a] < x.n(), "list names a column beyond the columns");
    need(static_cast<int64_t>(t.sign.shape(0)) == n, "targets and columns differ in length");
    need(l1 > 0.0 && l2 >= 0.0 && tol > 0.0, "l1 and tol are positive, l2 is not negative");
    vector_of(theta, count + 1, "theta has an entry per column and one for the intercept");
    vector_of(base, count + 1, "base has an entry per column and one for the intercept");
    vector_of(step, count + 1, "step has an entry per column and one for the intercept");
    vector_of(z, n, "z has an entry per row");
    const std::unique_ptr<double[]> room(new double[static_cast<size_t>(column_scratch(n, count))]);
    const std::unique_ptr<int64_t[]> lists(new int64_t[static_cast<size_t>(3 * count + 1)]);
    ColumnReport done;
    {
        nb::gil_scoped_release release;
        done = table->column_newton(x.rows, t.view, l.spec, {list.data(), count, l1, l2, tol, intercept, max_steps},
                                    theta.data(), z.data(), base.data(), step.data(), room.get(), lists.get());
    }
    return nb::make_tuple(done.status, done.steps, done.sweeps, done.gradients, done.primal, done.gap);
}

void listed(const PyRows& x, const Labels& list) {
    for (std::size_t k = 0; k < list.shape(0); ++k)
        need(list.data()[k] >= 0 && list.data()[k] < x.n(), "list names a row beyond the rows");
}
void list_dots(const PyRows& x, Labels list, In v, Out out) {
    listed(x, list);
    const auto count = static_cast<int64_t>(list.shape(0));
    need(v.shape(0) >= static_cast<std::size_t>(x.d()), "v has d entries");
    vector_of(out, count, "out has an entry for each row of the list");
    nb::gil_scoped_release release;
    table->list_dots(x.rows, list.data(), count, v.data(), out.data());
}
void list_add(const PyRows& x, Labels list, In a, Out v) {
    listed(x, list);
    const auto count = static_cast<int64_t>(list.shape(0));
    vector_of(a, count, "a has an entry for each row of the list");
    vector_of(v, x.d(), "v has d entries");
    nb::gil_scoped_release release;
    table->list_add(x.rows, list.data(), count, a.data(), v.data());
}
double quantile(Out x, Out weight, double target) {
    need(x.shape(0) == weight.shape(0), "x and weight differ in length");
    nb::gil_scoped_release release;
    return table->quantile(static_cast<int64_t>(x.shape(0)), x.data(), weight.data(), target);
}
void shuffle(Order order, std::uint64_t seed) {
    need(order.shape(0) < (std::size_t{1} << 31), "too many entries to shuffle");
    nb::gil_scoped_release release;
    table->shuffle(static_cast<int64_t>(order.shape(0)), seed, order.data());
}

using Bytes = nb::ndarray<const unsigned char, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Outcome = std::tuple<int, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t>;

// Line feeds and colons: at least as many as there are further rows and entries.
std::tuple<int64_t, int64_t> libsvm_count(Bytes text) {
    const unsigned char* p = text.data();
    const int64_t size = static_cast<int64_t>(text.shape(0));
    nb::gil_scoped_release release;
    int64_t lines = 0, colons = 0;
    for (int64_t i = 0; i < size; ++i) lines += p[i] == '\n', colons += p[i] == ':';
    return {lines, colons};
}

// fault, byte, detail, rows, entries, rows with a qid, lowest and highest index as written: io/libsvm.hpp
template <class T, class I>
Outcome libsvm_read(Bytes text, int64_t limit, Out labels, Order qid, Order starts, Indices<I> indices,
                    Values<T> values) {
    const auto [lines, colons] = libsvm_count(text);
    need(static_cast<int64_t>(labels.shape(0)) > lines && static_cast<int64_t>(qid.shape(0)) > lines &&
             static_cast<int64_t>(starts.shape(0)) > lines + 1,
         "labels, qid and starts need room for every line");
    need(static_cast<int64_t>(indices.shape(0)) >= colons && static_cast<int64_t>(values.shape(0)) >= colons,
         "indices and values need room for every colon");
    const char* bytes = reinterpret_cast<const char*>(text.data());
    nb::gil_scoped_release release;
    libsvm::Reader<T, I> reader(bytes, static_cast<int64_t>(text.shape(0)), limit);
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

template <class T, class I>
void define_libsvm_read(nb::module_& m) {
    m.def("libsvm_read", &libsvm_read<T, I>, nb::arg("text"), nb::arg("limit"), nb::arg("labels").noconvert(),
          nb::arg("qid").noconvert(), nb::arg("starts").noconvert(), nb::arg("indices").noconvert(),
          nb::arg("values").noconvert());
}

template <class E>
E one_of(const std::string& name, std::initializer_list<const char*> names, const char* what) {
    int at = 0;
    for (const char* known : names) {
        if (name == known) return static_cast<E>(at);
        ++at;
    }
    throw std::invalid_argument(what);
}

void rows_named(const Labels& rows, const PyRows& x) {
    for (std::size_t k = 0; k < rows.shape(0); ++k)
        need(0 <= rows.data()[k] && rows.data()[k] < x.n(), "a row is named that does not exist");
}

// Moves theta, counts and numbers; records updates in rows and norms: online/passes.hpp.
void perceptron(const PyRows& x, In sign, In lengths, const std::string& select, bool normalised, bool intercept,
                bool online, int64_t max_updates, int64_t budget, std::optional<Labels> order, Out theta, Order counts,
                Out numbers, Order rows, Out norms, std::optional<Out> sum) {
    const Select how = one_of<Select>(select, {"cyclic", "first", "listed", "worst"}, "no such order of rows");
    vector_of(sign, x.n(), "sign has n entries");
    vector_of(lengths, x.n(), "lengths has n entries");
    vector_of(theta, x.d() + 1, "theta has d + 1 entries");
    vector_of(numbers, 2, "numbers has two entries");
    need(counts.shape(0) >= 5 && counts.data()[0] >= 0, "counts has five entries");
    need(rows.shape(0) == norms.shape(0), "rows and norms differ in length");
    need(budget >= 1, "budget is positive");
    if (sum) vector_of(*sum, x.d() + 1, "sum has d + 1 entries");
    need((how == Select::listed) == order.has_value(), "an order of rows is given if and only if it is listed");
    if (order) {
        need(static_cast<int64_t>(order->shape(0)) == x.n(), "order has n entries");
        rows_named(*order, x);
    }
    nb::gil_scoped_release release;
    const PerceptronJob job{how,
                            normalised,
                            intercept,
                            online,
                            max_updates,
                            budget,
                            lengths.data(),
                            order ? order->data() : nullptr,
                            counts.data(),
                            numbers.data(),
                            static_cast<int64_t>(rows.shape(0)),
                            rows.data(),
                            norms.data(),
                            sum ? sum->data() : nullptr};
    table->perceptron(x.rows, sign.data(), job, theta.data());
}

// Steps first, first + 1, ... at the rows of draws, in batches; moves W (columns, d + 1) and sums: online/passes.hpp.
void sgd(const PyRows& x, const PyClasses& y, const PyLoss& l, const std::string& schedule, In eta0, In decay,
         double lam, double total, int64_t batch, int64_t first, bool intercept, Labels draws, Out2 W,
         std::optional<Out2> sums) {
    y.match(x);
    const Schedule how =
        one_of<Schedule>(schedule, {"constant", "inverse", "inverse_sqrt", "listed"}, "no such schedule");
    const int64_t columns = y.view.k == 2 ? 1 : y.view.k, count = static_cast<int64_t>(draws.shape(0));
    need(batch >= 1 && count % batch == 0, "draws are whole batches");
    need(first >= 0 && total > 0.0 && lam >= 0.0, "first and lam are not negative, total is positive");
    const int64_t sizes = how == Schedule::listed ? count / batch : columns;
    need(static_cast<int64_t>(eta0.shape(0)) == sizes && (how == Schedule::listed || decay.shape(0) == eta0.shape(0)),
         "eta0 and decay have an entry per column, or eta0 one per step if listed");
    for (const Out2* a : {&W, sums ? &*sums : &W})
        need(static_cast<int64_t>(a->shape(0)) == columns && static_cast<int64_t>(a->shape(1)) == x.d() + 1,
             "W and sums are (columns, d + 1)");
    rows_named(draws, x);
    nb::gil_scoped_release release;
    const auto room = scratch(sgd_scratch(batch, columns));
    table->sgd(x.rows, y.view, l.spec, {how, eta0.data(), decay.data(), lam, total, batch, first, intercept},
               draws.data(), count, W.data(), sums ? sums->data() : nullptr, room.get());
}

// out[j] += losses of column j of W (d + 1, K), which is for class of[j].
void losses_k(const PyRows& x, const PyClasses& y, const PyLoss& l, int64_t lo, int64_t hi, In2 W, Labels of, Out out) {
    x.range(lo, hi);
    y.match(x);
    const int64_t K = static_cast<int64_t>(W.shape(1));
    need(K % 8 == 0, "the columns of W are padded to a multiple of 8");
    matrix_of(W, x.d() + 1, K, "W has d + 1 rows");
    need(static_cast<int64_t>(of.shape(0)) == K, "of names a class for each column");
    vector_of(out, K, "out has an entry per column");
    nb::gil_scoped_release release;
    const auto room = scratch(losses_k_scratch(K));
    table->losses_k(x.rows, lo, hi, y.view, l.spec, W.data(), K, of.data(), out.data(), room.get());
}

// W is the start and becomes the answer; base, step and sums (the closing pass) describe the dual point.
std::tuple<int, int, int, int, double> softmax_newton(const PyRows& x, const PyClasses& y, double lam, int max_steps,
                                                      bool intercept, Out2 W, Out2 base, Out2 step, Out sums) {
    y.match(x);
    const int64_t order = x.d() + 1, K = y.padded(), k = y.view.k;
    for (const Out2* a : {&W, &base, &step})
        need(static_cast<int64_t>(a->shape(0)) == order && static_cast<int64_t>(a->shape(1)) == K,
             "W, base and step are (d + 1, k padded to a multiple of 8)");
    need(lam > 0.0, "lam must be positive");
    vector_of(sums, 7 + K + order * K + k * x.d(), "sums has 7 + K + (d + 1) K + k d entries");
    nb::gil_scoped_release release;
    const auto room = scratch(softmax_newton_scratch(x.rows, k));
    const NewtonReport r = table->softmax_newton(x.rows, y.view, {lam, 0.0, max_steps, intercept, 1}, W.data(),
                                                 base.data(), step.data(), sums.data(), room.get());
    return {r.status, r.steps, r.sweeps, r.grams, r.primal};
}

// D and R = -g - H D go on by conjugate gradients, preconditioned by the factors U, scale of blocks at mu. accuracy:
// objective, tol, near, rough, fine, to the end. Returns the products made, the first rho, and whether it is done.
std::tuple<int, double, bool> softmax_steps(const PyRows& x, const PyClasses& y, Planes p, double lam, bool intercept,
                                            In mu, In2 U, In2 scale, In accuracy, int most, bool two, In2 g, Out2 D,
                                            Out2 R, double first) {
    y.match(x);
    y.match(p);
    const int64_t order = x.d() + 1, K = y.padded(), blocks = static_cast<int64_t>(scale.shape(0));
    need(blocks == 1 || blocks == y.view.k, "one block, or one for each class");
    matrix_of(g, order, K, "g is (d + 1, k padded to a multiple of 8)");
    for (const Out2* a : {&D, &R}) matrix_of(In2(*a), order, K, "D and R are as g");
    vector_of(mu, x.d(), "mu has d entries");
    matrix_of(U, blocks * order, order, "U has d + 1 rows and columns for each block");
    matrix_of(scale, blocks, order, "scale has d + 1 entries for each block");
    vector_of(accuracy, 6, "accuracy has 6 entries");
    const double* a = accuracy.data();
    nb::gil_scoped_release release;
    const auto room = scratch(softmax_steps_scratch(x.rows, y.view.k));
    HelperThread thread(two);
    const StepJob job{lam,       a[0], a[1],      a[2],     a[3],         a[4],   a[5] != 0.0,
                      intercept, most, mu.data(), U.data(), scale.data(), blocks, thread.helper()};
    bool done = false;
    const int products = table->softmax_steps(x.rows, y.view, job, p.data(), p.stride(0), g.data(), D.data(), R.data(),
                                              &first, &done, room.get());
    return {products, first, done};
}

void scores_k(const PyRows& x, int64_t lo, int64_t hi, In2 W, Out z) {
    x.range(lo, hi);
    const int64_t K = static_cast<int64_t>(W.shape(1));
    need(K % 8 == 0, "the columns of W are padded to a multiple of 8");
    matrix_of(W, x.d() + 1, K, "W has d + 1 rows");
    vector_of(z, (hi - lo) * K, "z has an entry per row and column of W");
    nb::gil_scoped_release release;
    table->scores_k(x.rows, lo, hi, W.data(), K, z.data());
}

void softmax_sweep(const PyRows& x, const PyClasses& y, int64_t lo, int64_t hi, In2 W, Out out,
                   std::optional<Planes> p) {
    x.range(lo, hi);
    y.match(x);
    if (p) y.match(*p);
    matrix_of(W, x.d() + 1, y.padded(), "W is (d + 1, k padded to a multiple of 8)");
    vector_of(out, 3 + (x.d() + 1) * y.padded(), "out has 3 + (d + 1) K entries");
    nb::gil_scoped_release release;
    const auto room = scratch(softmax_scratch(x.rows, y.view.k));
    table->softmax_sweep(x.rows, lo, hi, y.view, W.data(), out.data(), p ? p->data() : nullptr, p ? p->stride(0) : 0,
                         room.get());
}

void softmax_hess_vec(const PyRows& x, const PyClasses& y, int64_t lo, int64_t hi, Planes p, In2 V, Out out) {
    x.range(lo, hi);
    y.match(x);
    y.match(p);
    matrix_of(V, x.d() + 1, y.padded(), "V is (d + 1, k padded to a multiple of 8)");
    vector_of(out, (x.d() + 1) * y.padded(), "out has (d + 1) K entries");
    nb::gil_scoped_release release;
    const auto room = scratch(softmax_scratch(x.rows, y.view.k));
    table->softmax_hess_vec(x.rows, lo, hi, y.view, p.data(), p.stride(0), V.data(), out.data(), room.get());
}

void softmax_ray(const PyRows& x, const PyClasses& y, int64_t lo, int64_t hi, In2 W, In2 D, In steps, Out out) {
    x.range(lo, hi);
    y.match(x);
    matrix_of(W, x.d() + 1, y.padded(), "W is (d + 1, k padded to a multiple of 8)");
    matrix_of(D, x.d() + 1, y.padded(), "D is (d + 1, k padded to a multiple of 8)");
    vector_of(out, 2 * static_cast<int64_t>(steps.shape(0)), "out has two entries per step");
    nb::gil_scoped_release release;
    const auto room = scratch(softmax_scratch(x.rows, y.view.k));
    table->softmax_ray(x.rows, lo, hi, y.view, W.data(), D.data(), steps.data(), static_cast<int64_t>(steps.shape(0)),
                       out.data(), room.get());
}

void softmax_cross(const PyClasses& y, int64_t lo, int64_t hi, Planes p, Out out) {
    y.match(p);
    need(0 <= lo && lo <= hi && hi <= static_cast<int64_t>(y.label.shape(0)), "rows out of range");
    vector_of(out, y.padded() * y.padded(), "out has K K entries");
    nb::gil_scoped_release release;
    const auto room = scratch(256);
    table->softmax_cross(lo, hi, y.view, p.data(), p.stride(0), out.data(), room.get());
}

void softmax_hessian(const PyRows& x, const PyClasses& y, int64_t lo, int64_t hi, Planes p, In mu, Out out) {
    x.range(lo, hi);
    y.match(x);
    y.match(p);
    vector_of(mu, x.d(), "mu has d entries");
    const int64_t order = x.d() + 1, k = y.view.k;
    vector_of(out, k * (k + 1) / 2 * order * order, "out has a (d + 1, d + 1) block for each pair of classes");
    nb::gil_scoped_release release;
    const auto room = scratch(gram_rows<double>(x.d()) + gram_scratch(x.rows));
    table->softmax_hessian(x.rows, lo, hi, y.view, p.data(), p.stride(0), mu.data(), out.data(), room.get());
}

void softmax_closing(const PyRows& x, const PyClasses& y, int64_t lo, int64_t hi, In2 base, In2 step, In2 W, In bound,
                     std::optional<In2> dual, Out out) {
    x.range(lo, hi);
    y.match(x);
    const int64_t order = x.d() + 1, K = y.padded(), k = y.view.k;
    for (const In2* a : {&base, &step, &W}) matrix_of(*a, order, K, "base, step and W are (d + 1, K)");
    vector_of(bound, order, "bound has d + 1 entries");
    if (dual) matrix_of(*dual, x.n(), k, "dual is (n, k)");
    vector_of(out, 7 + K + order * K + k * x.d(), "out has 7 + K + (d + 1) K + k d entries");
    nb::gil_scoped_release release;
    const auto room = scratch(softmax_scratch(x.rows, k));
    table->softmax_closing(x.rows, lo, hi, y.view, base.data(), step.data(), W.data(), bound.data(),
                           dual ? dual->data() : nullptr, out.data(), room.get());
}

void crammer_singer_step(const PyClasses& y, int64_t lo, int64_t hi, In2 z, std::optional<In2> dz, double t, In2 p0,
                         double sigma, Out2 p, Out out) {
    const int64_t n = static_cast<int64_t>(y.label.shape(0));
    need(0 <= lo && lo <= hi && hi <= n, "rows out of range");
    for (const In2* a : {&z, &p0}) matrix_of(*a, n, y.padded(), "z and p0 are (n, K)");
    if (dz) matrix_of(*dz, n, y.padded(), "dz is (n, K)");
    matrix_of(In2(p), n, y.padded(), "p is (n, K)");
    vector_of(out, 4, "out has 4 entries");
    nb::gil_scoped_release release;
    table->crammer_singer_step(lo, hi, y.view, z.data(), dz ? dz->data() : nullptr, t, p0.data(), sigma, p.data(),
                               out.data());
}

void crammer_singer_gradient(const PyRows& x, const PyClasses& y, int64_t lo, int64_t hi, In2 p, Out out) {
    x.range(lo, hi);
    y.match(x);
    matrix_of(p, x.n(), y.padded(), "p is (n, K)");
    vector_of(out, (x.d() + 1) * y.padded(), "out has (d + 1) K entries");
    nb::gil_scoped_release release;
    const auto room = scratch(softmax_scratch(x.rows, y.view.k));
    table->crammer_singer_gradient(x.rows, lo, hi, y.view, p.data(), out.data(), room.get());
}

void crammer_singer_ascend(const PyRows& x, const PyClasses& y, int64_t k0, int64_t k1, Order order, int64_t bucket,
                           double lam, double stiffness, In norms, Out2 p, Out2 W, Out state) {
    y.match(x);
    need(bucket >= 1 && lam > 0.0 && stiffness >= 0.0, "bucket and lam are positive, stiffness is not negative");
    need(0 <= k0 && k0 <= k1 && k1 <= static_cast<int64_t>(order.shape(0)), "buckets out of range");
    for (int64_t k = k0; k < k1; ++k)
        need(order.data()[k] >= 0 && order.data()[k] <= (x.n() - 1) / bucket, "order names a bucket beyond the rows");
    vector_of(norms, x.n(), "norms has n entries");
    matrix_of(In2(p), x.n(), y.padded(), "p is (n, K)");
    matrix_of(In2(W), x.d() + 1, y.padded(), "W is (d + 1, K)");
    vector_of(state, y.padded() + 1, "state has K + 1 entries");
    nb::gil_scoped_release release;
    const auto room = scratch(3 * y.padded());
    table->crammer_singer_ascend(x.rows, k0, k1, y.view, {lam, stiffness, order.data(), bucket, nullptr, 0, 0.0},
                                 norms.data(), p.data(), W.data(), state.data(), room.get());
}

void crammer_singer_closing(const PyRows& x, const PyClasses& y, int64_t lo, int64_t hi, In2 W, In bound, In2 dual,
                            Out out) {
    x.range(lo, hi);
    y.match(x);
    const int64_t order = x.d() + 1, K = y.padded(), k = y.view.k;
    matrix_of(W, order, K, "W is (d + 1, K)");
    vector_of(bound, order, "bound has d + 1 entries");
    matrix_of(dual, x.n(), k, "dual is (n, k)");
    vector_of(out, 7 + K + order * K + k * x.d(), "out has 7 + K + (d + 1) K + k d entries");
    nb::gil_scoped_release release;
    const auto room = scratch(softmax_scratch(x.rows, k));
    table->crammer_singer_closing(x.rows, lo, hi, y.view, W.data(), bound.data(), dual.data(), out.data(), room.get());
}

// Switches the instruction set ("base", "avx2", "avx512"), so that one machine can test all it supports.
void use(const std::string& name) {
    for (int i = 0; const Set& set : sets) {
        if (name == set.name) {
            need(i <= best, "this machine does not have that instruction set");
            current = set.table();
            return;
        }
        ++i;
    }
    throw std::invalid_argument("no such instruction set");
}

}  // namespace

NB_MODULE(_kernels, m) {
    nb::class_<PyRows>(m, "Rows")
        .def(nb::init<Any>(), nb::arg("x"))
        .def(nb::init<Any, Any, Any, int64_t>(), nb::arg("data"), nb::arg("indices"), nb::arg("indptr"),
             nb::arg("n_columns"))
        .def_prop_ro("n", &PyRows::n)
        .def_prop_ro("d", &PyRows::d);
    nb::class_<PyTargets>(m, "Targets")
        .def(nb::init<In, std::optional<In>, std::optional<In>>(), nb::arg("sign"),
             nb::arg("offset").none() = nb::none(), nb::arg("weight").none() = nb::none());
    nb::class_<PyAscent>(m, "Ascent")
        .def(nb::init<const PyRows&, const PyTargets&, const PyLoss&, In, double, double, bool, bool, std::uint64_t,
                      double, double>(),
             nb::arg("rows"), nb::arg("targets"), nb::arg("loss"), nb::arg("theta").noconvert(), nb::arg("lam"),
             nb::arg("tol"), nb::arg("intercept"), nb::arg("two"), nb::arg("seed"), nb::arg("large"), nb::arg("leave"))
        .def("advance", &PyAscent::advance, nb::arg("entries"), nb::arg("limit"))
        .def("missed", &PyAscent::missed, nb::arg("gap"))
        .def("halt", &PyAscent::halt)
        .def("epoch", &PyAscent::epoch)
        .def("improve", &PyAscent::improve)
        .def("point", &PyAscent::point, nb::arg("theta").noconvert(), nb::arg("u").noconvert())
        .def("restart", &PyAscent::restart, nb::arg("u").noconvert(), nb::arg("b"))
        .def("predicted_gap", [](const PyAscent& a) { return a.self->predicted_gap(); })
        .def("free", [](const PyAscent& a) { return a.self->free(); })
        .def_static(
            "stalled",
            [](In slacks, int64_t lately) {
                return Ascent::stalled(slacks.data(), static_cast<int64_t>(slacks.shape(0)), lately);
            },
            nb::arg("slacks").noconvert(), nb::arg("lately"))
        .def_static("jump", &Ascent::jump, nb::arg("first"), nb::arg("second"), nb::arg("third"))
        .def_prop_ro("class_start", &PyAscent::class_start)
        .def_prop_ro("listed", [](const PyAscent& a) { return a.self->listed(); })
        .def_prop_ro("epochs", &number_of<int64_t, &Ascent::epochs>)
        .def_prop_ro("primal", &number_of<double, &Ascent::primal>)
        .def_prop_ro("hardness", &number_of<double, &Ascent::hardness>)
        .def_prop_ro("stiffness", &number_of<double, &Ascent::stiffness>)
        .def_prop_ro("started_near", &number_of<bool, &Ascent::started_near>)
        .def_prop_ro("overflown", &number_of<bool, &Ascent::overflown>)
        .def_prop_rw("passes", &number_of<double, &Ascent::passes>,
                     [](PyAscent& a, double passes) { a.self->passes = passes; })
        .def_prop_rw("patience", &number_of<double, &Ascent::patience>,
                     [](PyAscent& a, double patience) { a.self->patience = patience; })
        .def_prop_rw("most", &number_of<int64_t, &Ascent::most>, [](PyAscent& a, int64_t most) { a.self->most = most; })
        .def_prop_ro("e", [](const PyAscent& a) { return a.self->state[0]; })
        .def_prop_ro("u", &array_of<&Ascent::u>)
        .def_prop_ro("theta", &array_of<&Ascent::theta>)
        .def_prop_ro("z", &array_of<&Ascent::z>)
        .def_prop_ro("along", &array_of<&Ascent::along>)
        .def_prop_ro("centre", &array_of<&Ascent::c>)
        .def_prop_ro("slacks", &array_of<&Ascent::slacks>);
    nb::class_<PyLoss>(m, "Loss").def(nb::init<const std::string&, double, double>(), nb::arg("name"),
                                      nb::arg("width") = 1.0, nb::arg("centre") = 1.0);
    m.def("sampled_mean", &mean_of_some, nb::arg("rows"), nb::arg("targets"));
    m.def("kept_share", [](const PyRows& x) { return kept_share(x.rows); }, nb::arg("rows"));
    m.def("closed_values", &values_of, nb::arg("sums").noconvert(), nb::arg("theta").noconvert(), nb::arg("lam"),
          nb::arg("intercept"));
    m.def("sweep", &sweep, nb::arg("rows"), nb::arg("targets"), nb::arg("loss"), nb::arg("lo"), nb::arg("hi"),
          nb::arg("theta").noconvert(), nb::arg("out").noconvert(),
          nb::arg("curvature").noconvert().none() = nb::none(), nb::arg("gradient") = true, nb::arg("blend") = 0.0);
    m.def("closing", &closing, nb::arg("rows"), nb::arg("targets"), nb::arg("loss"), nb::arg("lo"), nb::arg("hi"),
          nb::arg("base").noconvert(), nb::arg("step").noconvert(), nb::arg("theta").noconvert(),
          nb::arg("dual").none(), nb::arg("out").noconvert(), nb::arg("found").none() = nb::none());
    m.def("sigmoids", &sigmoids, nb::arg("rows"), nb::arg("lo"), nb::arg("hi"), nb::arg("theta"),
          nb::arg("p").noconvert());
    m.def("softmaxes", &softmaxes, nb::arg("rows"), nb::arg("lo"), nb::arg("hi"), nb::arg("W"),
          nb::arg("p").noconvert());
    m.def("all_finite", &all_finite, nb::arg("rows"));
    m.def("csr_repeats", &csr_repeats<std::int32_t>, nb::arg("indices").noconvert(), nb::arg("indptr").noconvert(),
          nb::arg("d"));
    m.def("csr_repeats", &csr_repeats<std::int64_t>, nb::arg("indices").noconvert(), nb::arg("indptr").noconvert(),
          nb::arg("d"));
    m.def("two_classes", &two_classes, nb::arg("y"), nb::arg("sign").noconvert());
    m.def("gram", &gram, nb::arg("rows"), nb::arg("lo"), nb::arg("hi"), nb::arg("h"), nb::arg("mu"),
          nb::arg("out").noconvert(), nb::arg("single") = false);
    m.def("hess_vec", &hess_vec, nb::arg("rows"), nb::arg("lo"), nb::arg("hi"), nb::arg("h"), nb::arg("v"),
          nb::arg("out").noconvert());
    m.def("combine", &combine, nb::arg("rows"), nb::arg("lo"), nb::arg("hi"), nb::arg("a"), nb::arg("out").noconvert());
    m.def("moments", &moments, nb::arg("rows"), nb::arg("lo"), nb::arg("hi"), nb::arg("h").none(),
          nb::arg("out").noconvert());
    m.def("scores", &scores, nb::arg("rows"), nb::arg("lo"), nb::arg("hi"), nb::arg("theta").noconvert(),
          nb::arg("z").noconvert());
    m.def("ray", &ray, nb::arg("rows"), nb::arg("targets"), nb::arg("loss"), nb::arg("lo"), nb::arg("hi"),
          nb::arg("theta").noconvert(), nb::arg("delta"), nb::arg("steps"), nb::arg("out").noconvert());
    m.def("reaches", &reaches, nb::arg("rows"), nb::arg("lo"), nb::arg("hi"), nb::arg("theta"),
          nb::arg("z").noconvert());
    m.def("row_norms", &row_norms, nb::arg("rows"), nb::arg("lo"), nb::arg("hi"), nb::arg("norms").noconvert());
    m.def("pointwise", &pointwise, nb::arg("loss"), nb::arg("m"), nb::arg("value").noconvert(),
          nb::arg("slope").noconvert(), nb::arg("curvature").noconvert(), nb::arg("conjugate").noconvert());
    m.def("spd_factor", &spd_factor, nb::arg("A"), nb::arg("drop"), nb::arg("U").noconvert(),
          nb::arg("scale").noconvert());
    m.def("spd_apply", &spd_apply, nb::arg("U"), nb::arg("scale"), nb::arg("b"), nb::arg("x").noconvert());
    m.def("spd_solve", &spd_solve, nb::arg("A"), nb::arg("b"), nb::arg("drop"), nb::arg("x").noconvert());
    m.def("nnls", &nnls, nb::arg("A"), nb::arg("f"), nb::arg("tol"), nb::arg("max_steps"), nb::arg("x").noconvert(),
          nb::arg("r").noconvert());
    m.def("newton", &newton, nb::arg("rows"), nb::arg("targets"), nb::arg("loss"), nb::arg("lam"), nb::arg("tol"),
          nb::arg("max_steps"), nb::arg("intercept"), nb::arg("polish"), nb::arg("two"), nb::arg("theta").noconvert(),
          nb::arg("base").noconvert(), nb::arg("step").noconvert(), nb::arg("sums").noconvert());
    m.def("sound", &sound, nb::arg("starts"), nb::arg("indices"), nb::arg("bound"));
    m.def("enclosed", &enclosed, nb::arg("sums"), nb::arg("theta"), nb::arg("lam"), nb::arg("intercept"),
          nb::arg("rows"));
    m.def("kink_margins", &kink_margins, nb::arg("rows"), nb::arg("targets"), nb::arg("loss"), nb::arg("lo"),
          nb::arg("hi"), nb::arg("theta").noconvert(), nb::arg("v").noconvert(), nb::arg("out").noconvert());
    m.def("sort_rows", &sort_rows, nb::arg("rows"), nb::arg("targets"), nb::arg("loss"), nb::arg("lo"), nb::arg("hi"),
          nb::arg("theta").noconvert(), nb::arg("tau"), nb::arg("mu").noconvert(), nb::arg("scale").noconvert(),
          nb::arg("v").noconvert(), nb::arg("u").noconvert(), nb::arg("out").noconvert());
    m.def("ipm_central", &ipm_central, nb::arg("loss"), nb::arg("lo"), nb::arg("hi"), nb::arg("mu"),
          nb::arg("state").noconvert());
    m.def("ipm_gather", &ipm_gather, nb::arg("rows"), nb::arg("targets"), nb::arg("loss"), nb::arg("lo"), nb::arg("hi"),
          nb::arg("step"), nb::arg("state").noconvert(), nb::arg("first"), nb::arg("h").noconvert(),
          nb::arg("out").noconvert());
    m.def("ipm_predict", &ipm_predict, nb::arg("rows"), nb::arg("targets"), nb::arg("lo"), nb::arg("hi"),
          nb::arg("delta").noconvert(), nb::arg("state").noconvert(), nb::arg("first"), nb::arg("out").noconvert());
    m.def("ipm_correct", &ipm_correct, nb::arg("rows"), nb::arg("targets"), nb::arg("lo"), nb::arg("hi"),
          nb::arg("delta").noconvert(), nb::arg("mu"), nb::arg("state").noconvert(), nb::arg("first"));
    m.def("ipm_recentre", &ipm_recentre, nb::arg("rows"), nb::arg("targets"), nb::arg("lo"), nb::arg("hi"),
          nb::arg("step"), nb::arg("mu"), nb::arg("state").noconvert(), nb::arg("first"), nb::arg("out").noconvert());
    m.def("ipm_attempt", &ipm_attempt, nb::arg("rows"), nb::arg("targets"), nb::arg("lo"), nb::arg("hi"),
          nb::arg("delta").noconvert(), nb::arg("step"), nb::arg("mu"), nb::arg("state").noconvert(), nb::arg("first"));
    m.def("ipm_adopt", &ipm_adopt, nb::arg("rows"), nb::arg("targets"), nb::arg("lo"), nb::arg("hi"), nb::arg("step"),
          nb::arg("mu"), nb::arg("state").noconvert(), nb::arg("first"));
    m.def("crossover", &crossover, nb::arg("rows"), nb::arg("targets"), nb::arg("loss"), nb::arg("lam"),
          nb::arg("intercept"), nb::arg("linear").none(), nb::arg("rounds"), nb::arg("theta").noconvert(),
          nb::arg("u").noconvert(), nb::arg("v").noconvert());
    m.def("make_feasible", &make_feasible, nb::arg("targets"), nb::arg("loss"), nb::arg("intercept"),
          nb::arg("u").noconvert());
    m.def("interior", &interior, nb::arg("rows"), nb::arg("targets"), nb::arg("loss"), nb::arg("lam"), nb::arg("tol"),
          nb::arg("max_steps"), nb::arg("intercept"), nb::arg("warm"), nb::arg("theta").noconvert(),
          nb::arg("u").noconvert(), nb::arg("sums").noconvert());
    m.def("dual_cd", &dual_cd, nb::arg("rows"), nb::arg("targets"), nb::arg("loss"), nb::arg("k0"), nb::arg("k1"),
          nb::arg("order").noconvert(), nb::arg("bucket"), nb::arg("list").noconvert().none(), nb::arg("far"),
          nb::arg("lam"), nb::arg("stiffness"), nb::arg("norms").noconvert(), nb::arg("u").noconvert(),
          nb::arg("z").noconvert(), nb::arg("b").noconvert(), nb::arg("theta").noconvert(),
          nb::arg("state").noconvert(), nb::arg("along").none() = nb::none(), nb::arg("centre") = 0.0,
          nb::arg("two") = false);
    m.def("class_sums", &class_sums, nb::arg("rows"), nb::arg("targets"), nb::arg("lo"), nb::arg("hi"),
          nb::arg("norms").noconvert(), nb::arg("out").noconvert());
    m.def("two_scores", &two_scores, nb::arg("rows"), nb::arg("lo"), nb::arg("hi"), nb::arg("a"), nb::arg("b"),
          nb::arg("za").noconvert(), nb::arg("zb").noconvert());
    m.def("remaining", &remaining, nb::arg("list").noconvert());
    m.def("best_intercept", &best_intercept, nb::arg("targets"), nb::arg("loss"), nb::arg("free"),
          nb::arg("z").noconvert(), nb::arg("b"), nb::arg("reach"), nb::arg("fine"));
    m.def("best_among", &best_among, nb::arg("targets"), nb::arg("loss"), nb::arg("free"), nb::arg("list").noconvert(),
          nb::arg("z"), nb::arg("u"), nb::arg("e"), nb::arg("b"), nb::arg("reach"), nb::arg("fine"));
    m.def("arrange", &arrange, nb::arg("rows"), nb::arg("order").noconvert(), nb::arg("seed"),
          nb::arg("list").none() = nb::none());
    m.def("balance", &balance, nb::arg("targets"), nb::arg("loss"), nb::arg("z").noconvert(),
          nb::arg("seen").noconvert(), nb::arg("u").noconvert());
    m.def("shifted", &shifted, nb::arg("targets"), nb::arg("loss"), nb::arg("lo"), nb::arg("hi"),
          nb::arg("z").noconvert(), nb::arg("b"), nb::arg("out").noconvert());
    m.def("part_sweep", &part_sweep, nb::arg("rows"), nb::arg("targets"), nb::arg("loss"), nb::arg("lo"), nb::arg("hi"),
          nb::arg("part").noconvert(), nb::arg("parts"), nb::arg("theta").noconvert(), nb::arg("out").noconvert(),
          nb::arg("curvature").noconvert(), nb::arg("moments").noconvert().none() = nb::none());
    m.def("part_gram", &part_gram, nb::arg("rows"), nb::arg("lo"), nb::arg("hi"), nb::arg("part").noconvert(),
          nb::arg("parts"), nb::arg("h").noconvert(), nb::arg("mu").noconvert(), nb::arg("out").noconvert(),
          nb::arg("single") = false);
    m.def("grid_closing", &grid_closing, nb::arg("rows"), nb::arg("targets"), nb::arg("loss"), nb::arg("lo"),
          nb::arg("hi"), nb::arg("part").noconvert(), nb::arg("bases").noconvert(), nb::arg("steps").noconvert(),
          nb::arg("base_of").noconvert(), nb::arg("part_of").noconvert(), nb::arg("reach").noconvert(),
          nb::arg("held").noconvert().none(), nb::arg("slot_of").noconvert(), nb::arg("out").noconvert());
    m.def("quadratic_cd", &quadratic_cd, nb::arg("S").noconvert(), nb::arg("l1"), nb::arg("tol"), nb::arg("max_sweeps"),
          nb::arg("x").noconvert(), nb::arg("slope").noconvert());
    m.def("shuffle", &shuffle, nb::arg("order").noconvert(), nb::arg("seed"));
    m.def("list_dots", &list_dots, nb::arg("rows"), nb::arg("list").noconvert(), nb::arg("v"),
          nb::arg("out").noconvert());
    m.def("list_add", &list_add, nb::arg("rows"), nb::arg("list").noconvert(), nb::arg("a"), nb::arg("v").noconvert());
    m.def("lasso_newton", &lasso_newton, nb::arg("rows"), nb::arg("targets"), nb::arg("loss"), nb::arg("l1"),
          nb::arg("l2"), nb::arg("tol"), nb::arg("max_steps"), nb::arg("intercept"), nb::arg("theta").noconvert(),
          nb::arg("base").noconvert(), nb::arg("step").noconvert(), nb::arg("sums").noconvert());
    m.def("column_newton", &column_newton, nb::arg("columns"), nb::arg("targets"), nb::arg("loss"),
          nb::arg("list").noconvert(), nb::arg("l1"), nb::arg("l2"), nb::arg("tol"), nb::arg("max_steps"),
          nb::arg("intercept"), nb::arg("theta").noconvert(), nb::arg("z").noconvert(), nb::arg("base").noconvert(),
          nb::arg("step").noconvert());
    m.def("quantile", &quantile, nb::arg("x").noconvert(), nb::arg("weight").noconvert(), nb::arg("target"));
    m.def("perceptron", &perceptron, nb::arg("rows"), nb::arg("sign").noconvert(), nb::arg("lengths").noconvert(),
          nb::arg("select"), nb::arg("normalised"), nb::arg("intercept"), nb::arg("online"), nb::arg("max_updates"),
          nb::arg("budget"), nb::arg("order").none(), nb::arg("theta").noconvert(), nb::arg("counts").noconvert(),
          nb::arg("numbers").noconvert(), nb::arg("updated").noconvert(), nb::arg("norms").noconvert(),
          nb::arg("sum").noconvert().none());
    m.def("sgd", &sgd, nb::arg("rows"), nb::arg("classes"), nb::arg("loss"), nb::arg("schedule"),
          nb::arg("eta0").noconvert(), nb::arg("decay").noconvert(), nb::arg("lam"), nb::arg("total"), nb::arg("batch"),
          nb::arg("first"), nb::arg("intercept"), nb::arg("draws").noconvert(), nb::arg("W").noconvert(),
          nb::arg("sums").noconvert().none());
    m.def("losses_k", &losses_k, nb::arg("rows"), nb::arg("classes"), nb::arg("loss"), nb::arg("lo"), nb::arg("hi"),
          nb::arg("W"), nb::arg("of"), nb::arg("out").noconvert());
    nb::class_<PyClasses>(m, "Classes")
        .def(nb::init<Labels, std::optional<In>, int64_t>(), nb::arg("labels"), nb::arg("weight").none(), nb::arg("k"))
        .def_prop_ro("padded", &PyClasses::padded);
    m.def("scores_k", &scores_k, nb::arg("rows"), nb::arg("lo"), nb::arg("hi"), nb::arg("W"), nb::arg("z").noconvert());
    m.def("softmax_sweep", &softmax_sweep, nb::arg("rows"), nb::arg("classes"), nb::arg("lo"), nb::arg("hi"),
          nb::arg("W"), nb::arg("out").noconvert(), nb::arg("p").none() = nb::none());
    m.def("softmax_hess_vec", &softmax_hess_vec, nb::arg("rows"), nb::arg("classes"), nb::arg("lo"), nb::arg("hi"),
          nb::arg("p"), nb::arg("V"), nb::arg("out").noconvert());
    m.def("softmax_ray", &softmax_ray, nb::arg("rows"), nb::arg("classes"), nb::arg("lo"), nb::arg("hi"), nb::arg("W"),
          nb::arg("D"), nb::arg("steps"), nb::arg("out").noconvert());
    m.def("softmax_cross", &softmax_cross, nb::arg("classes"), nb::arg("lo"), nb::arg("hi"), nb::arg("p"),
          nb::arg("out").noconvert());
    m.def("softmax_hessian", &softmax_hessian, nb::arg("rows"), nb::arg("classes"), nb::arg("lo"), nb::arg("hi"),
          nb::arg("p"), nb::arg("mu"), nb::arg("out").noconvert());
    m.def("softmax_closing", &softmax_closing, nb::arg("rows"), nb::arg("classes"), nb::arg("lo"), nb::arg("hi"),
          nb::arg("base").noconvert(), nb::arg("step").noconvert(), nb::arg("W"), nb::arg("bound"),
          nb::arg("dual").none(), nb::arg("out").noconvert());
    m.def(
        "softmax_chunk", [](const PyRows& x, int64_t k) { return table->softmax_chunk(x.rows, k); }, nb::arg("rows"),
        nb::arg("k"));
    m.def("softmax_steps", &softmax_steps, nb::arg("rows"), nb::arg("classes"), nb::arg("p"), nb::arg("lam"),
          nb::arg("intercept"), nb::arg("mu"), nb::arg("U"), nb::arg("scale"), nb::arg("accuracy"), nb::arg("most"),
          nb::arg("two"), nb::arg("g"), nb::arg("D").noconvert(), nb::arg("R").noconvert(), nb::arg("first"));
    m.def("softmax_newton", &softmax_newton, nb::arg("rows"), nb::arg("classes"), nb::arg("lam"), nb::arg("max_steps"),
          nb::arg("intercept"), nb::arg("W"), nb::arg("base").noconvert(), nb::arg("step").noconvert(),
          nb::arg("sums").noconvert());
    m.def("crammer_singer_step", &crammer_singer_step, nb::arg("classes"), nb::arg("lo"), nb::arg("hi"), nb::arg("z"),
          nb::arg("dz").none(), nb::arg("t"), nb::arg("p0"), nb::arg("sigma"), nb::arg("p").noconvert(),
          nb::arg("out").noconvert());
    m.def("crammer_singer_gradient", &crammer_singer_gradient, nb::arg("rows"), nb::arg("classes"), nb::arg("lo"),
          nb::arg("hi"), nb::arg("p"), nb::arg("out").noconvert());
    m.def("crammer_singer_ascend", &crammer_singer_ascend, nb::arg("rows"), nb::arg("classes"), nb::arg("k0"),
          nb::arg("k1"), nb::arg("order").noconvert(), nb::arg("bucket"), nb::arg("lam"), nb::arg("stiffness"),
          nb::arg("norms"), nb::arg("p").noconvert(), nb::arg("W").noconvert(), nb::arg("state").noconvert());
    m.def("crammer_singer_closing", &crammer_singer_closing, nb::arg("rows"), nb::arg("classes"), nb::arg("lo"),
          nb::arg("hi"), nb::arg("W"), nb::arg("bound"), nb::arg("dual"), nb::arg("out").noconvert());
    m.def("libsvm_count", &libsvm_count, nb::arg("text"));
    define_libsvm_read<double, std::int32_t>(m);
    define_libsvm_read<double, int64_t>(m);
    define_libsvm_read<float, std::int32_t>(m);
    define_libsvm_read<float, int64_t>(m);
    m.def("instruction_set", [] { return std::string(table->name); });
    m.def("use_instruction_set", &use, nb::arg("name"));
}
