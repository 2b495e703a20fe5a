// Dual coordinate ascent, its driver and its parts: kernels/dual/.
#include <limits>
#include <vector>

#include "bindings/types.hpp"
#include "core/helper_thread.hpp"
#include "dual/ascent.hpp"
#include "sums/closed_values.hpp"

namespace linsep::python {
namespace {

constexpr int64_t kShuffled = int64_t{1} << 31;  // maximum number of entries of a shuffle

void dual_cd(const PyRows& x, const PyTargets& t, const PyLoss& l, int64_t k0, int64_t k1, IdView order, int64_t bucket,
             std::optional<IdOut> rows, double far, double lam, double stiffness, View norms, Out u, Out z, Out b,
             Out theta, Out state, std::optional<In> along, double centre, bool two) {
    t.match(x);
    need(l.spec.id != LossId::exponential, "the exponential loss has no dual step");
    need(bucket >= 1 && lam > 0.0 && stiffness >= 0.0, "bucket and lam are positive, stiffness is not negative");
    need(0 <= k0 && k0 <= k1 && k1 <= length(order), "buckets out of range");
    const int64_t count = rows ? length(*rows) : x.rows.n;
    for (int64_t k = k0; k < k1; ++k)
        need(order.data()[k] >= 0 && order.data()[k] <= (count - 1) / bucket, "order names a bucket beyond the rows");
    for (int64_t k = 0; rows && k < count; ++k) need(rows->data()[k] < x.rows.n, "list names a row beyond the rows");
    vector_of(norms, x.n(), "norms has n entries");
    vector_of(u, x.n(), "u has n entries");
    vector_of(z, x.n(), "z has n entries");
    vector_of(b, x.n(), "b has n entries");
    vector_of(theta, x.d() + 1, "theta has d + 1 entries");
    vector_of(state, 4, "state has four entries");
    if (along) vector_of(*along, x.n(), "along has n entries");
    nb::gil_scoped_release release;
    HelperThread thread(two);
    const CdJob job{lam,
                    stiffness,
                    order.data(),
                    bucket,
                    data(rows),
                    count,
                    rows ? far : std::numeric_limits<double>::infinity(),
                    data(along),
                    along ? centre : 0.0,
                    thread.helper()};
    table->dual_cd(x.rows, k0, k1, t.view, l.spec, job, norms.data(), u.data(), z.data(), b.data(), theta.data(),
                   state.data());
}

// Holds references to its inputs. The arrays u, theta, z, along and centre are views of its own memory: their sizes
// never change, and they keep the object alive.
struct PyAscent {
    PyRows rows;
    PyTargets targets;
    std::unique_ptr<Ascent> self;

    PyAscent(const PyRows& x, const PyTargets& t, const PyLoss& l, View theta, double lam, double tol, bool intercept,
             bool two, std::uint64_t seed, double large, double leave)
        : rows(x), targets(t) {
        t.match(x);
        need(l.spec.id != LossId::exponential && l.spec.id != LossId::perceptron, "this loss has no dual step");
        need(lam > 0.0, "lam is positive");
        need(x.n() < kShuffled, "too many rows to shuffle");
        vector_of(theta, x.d() + 1, "theta has d + 1 entries");
        const AscentJob job{x.rows, t.view, l.spec, lam, tol, intercept, two, seed, large, leave};
        nb::gil_scoped_release release;
        self = std::make_unique<Ascent>(*table, job, theta.data());
    }
    int advance(double entries, double limit) { return static_cast<int>(self->advance(entries, limit)); }
    void report_gap(double gap) { self->report_gap(gap); }
    void halt() { self->halt(); }
    void epoch() { self->epoch(); }
    void improve() { self->improve(); }
    void point(Out theta, Out u) {
        vector_of(theta, rows.d() + 1, "theta has d + 1 entries");
        vector_of(u, rows.n(), "u has n entries");
        nb::gil_scoped_release release;
        self->point(theta.data(), u.data());
    }
    void restart(View u, double b) {
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

template <std::vector<double> Ascent::* member>
nb::ndarray<nb::numpy, double, nb::ndim<1>> array_of(PyAscent& ascent) {
    std::vector<double>& values = (*ascent.self).*member;
    return {values.data(), {values.size()}, nb::find(ascent)};
}
template <class T, T Ascent::* member>
T number_of(const PyAscent& ascent) {
    return (*ascent.self).*member;
}
template <class T, T Ascent::* member>
void set_number(PyAscent& ascent, T value) {
    (*ascent.self).*member = value;
}

double sampled_mean_of(const PyRows& x, const PyTargets& t) {
    t.match(x);
    return sampled_mean(*table, x.rows, t.view);
}

std::tuple<double, double> closed_values_of(View sums, View theta, double lam, bool intercept) {
    const int64_t d = length(theta) - 1;
    need(d >= 0 && lam > 0.0, "theta has d + 1 entries, lam is positive");
    need(length(sums) == 8 + 2 * d, "sums has 8 + 2 d entries");
    const ClosedValues found = closed_values(sums.data(), theta.data(), d, 0.0, lam, intercept);
    return {found.primal, found.dual};
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
    need(length(a) >= x.d() && length(b) >= x.d(), "a and b have d entries");
    vector_of(za, x.n(), "za has n entries");
    vector_of(zb, x.n(), "zb has n entries");
    nb::gil_scoped_release release;
    const auto room = scratch(2 * x.d());
    double* const pairs = room.get();
    for (int64_t j = 0; j < x.rows.d; ++j) pairs[2 * j] = a.data()[j], pairs[2 * j + 1] = b.data()[j];
    table->two_scores(x.rows, lo, hi, a.data(), b.data(), pairs, za.data(), zb.data());
}

int64_t remaining(IdOut rows) { return table->remaining(length(rows), rows.data()); }

std::tuple<double, double> best_intercept(const PyTargets& t, const PyLoss& l, bool free, View z, double b,
                                          double reach, double fine) {
    vector_of(z, t.n(), "z has n entries");
    nb::gil_scoped_release release;
    const auto room = scratch(intercept_scratch(t.count()));
    const Settled found = table->best_intercept(t.count(), t.view, l.spec, free, z.data(), b, reach, fine, room.get());
    return {found.b, found.loss};
}

std::tuple<double, double> best_among(const PyTargets& t, const PyLoss& l, bool free, IdView list, In z, In u, double e,
                                      double b, double reach, double fine) {
    vector_of(z, t.n(), "z has n entries");
    vector_of(u, t.n(), "u has n entries");
    in_range(list, 0, t.count(), "list names a row beyond n");
    nb::gil_scoped_release release;
    const auto room = scratch(among_scratch(length(list)));
    const Settled found = table->best_among(list.data(), length(list), t.view, l.spec, free, z.data(), u.data(), e, b,
                                            reach, fine, room.get());
    return {found.b, found.loss};
}

void arrange(const PyRows& x, IdOut order, std::uint64_t seed, std::optional<Ids> list) {
    const int64_t places = list ? length(*list) : x.rows.n;
    need(length(order) < kShuffled, "too many entries to shuffle");
    in_range(Ids(order), 0, places, "order names a place beyond the list");
    if (list) in_range(*list, 0, x.rows.n, "list names a row beyond the rows");
    nb::gil_scoped_release release;
    int64_t spare[256];
    table->arrange(x.rows, length(order), data(list), seed, order.data(), spare);
}

void balance(const PyTargets& t, const PyLoss& l, View z, View seen, Out u) {
    vector_of(z, t.n(), "z has n entries");
    vector_of(seen, t.n(), "seen has n entries");
    vector_of(u, t.n(), "u has n entries");
    nb::gil_scoped_release release;
    const auto room = scratch(intercept_scratch(t.count()));
    table->balance(t.count(), t.view, l.spec, z.data(), seen.data(), u.data(), room.get());
}

void shifted_sums(const PyTargets& t, const PyLoss& l, int64_t lo, int64_t hi, View z, double b, Out out) {
    need(0 <= lo && lo <= hi && hi <= t.count(), "rows out of range");
    vector_of(z, t.n(), "z has n entries");
    vector_of(out, 3, "out has three entries");
    nb::gil_scoped_release release;
    table->shifted_sums(lo, hi, t.view, l.spec, z.data(), b, out.data());
}

void list_dots(const PyRows& x, IdView list, In v, Out out) {
    in_range(list, 0, x.rows.n, "list names a row beyond the rows");
    need(length(v) >= x.d(), "v has d entries");
    vector_of(out, length(list), "out has an entry for each row of the list");
    nb::gil_scoped_release release;
    table->list_dots(x.rows, list.data(), length(list), v.data(), out.data());
}

void list_add(const PyRows& x, IdView list, In a, Out v) {
    in_range(list, 0, x.rows.n, "list names a row beyond the rows");
    vector_of(a, length(list), "a has an entry for each row of the list");
    vector_of(v, x.d(), "v has d entries");
    nb::gil_scoped_release release;
    table->list_add(x.rows, list.data(), length(list), a.data(), v.data());
}

double quantile(Out x, Out weight, double target) {
    need(x.shape(0) == weight.shape(0), "x and weight differ in length");
    nb::gil_scoped_release release;
    return table->quantile(length(x), x.data(), weight.data(), target);
}

void shuffle(IdOut order, std::uint64_t seed) {
    need(length(order) < kShuffled, "too many entries to shuffle");
    nb::gil_scoped_release release;
    table->shuffle(length(order), seed, order.data());
}

using namespace nb::literals;
using Unlocked = nb::call_guard<nb::gil_scoped_release>;

void bind_ascent(nb::module_& m) {
    nb::class_<PyAscent>(m, "Ascent",
                         "A fit by dual coordinate ascent, from its start to its end (kernels/dual/ascent.hpp).")
        .def(nb::init<const PyRows&, const PyTargets&, const PyLoss&, View, double, double, bool, bool, std::uint64_t,
                      double, double>(),
             "rows"_a, "targets"_a, "loss"_a, "theta"_a, "lam"_a, "tol"_a, "intercept"_a, "two"_a, "seed"_a, "large"_a,
             "leave"_a)
        .def("advance", &PyAscent::advance, "entries"_a, "limit"_a, Unlocked(),
             "Continue until the caller must act: 0 look at limits after about so many entries, 1 close the gap at "
             "point(), 2 decide about slow progress, 3 end, 4 a number has overflowed.")
        .def("report_gap", &PyAscent::report_gap, "gap"_a, Unlocked(),
             "Report that the proven gap is wider than asked for.")
        .def("halt", &PyAscent::halt, Unlocked(), "End an epoch that was cut short.")
        .def("epoch", &PyAscent::epoch, Unlocked(), "Make one whole epoch.")
        .def("improve", &PyAscent::improve, Unlocked(), "Make one whole round on the free rows.")
        .def("point", &PyAscent::point, "theta"_a, "u"_a,
             "Write theta [d + 1] with the best intercept known, and u [n] moved to sum s sign u = 0.")
        .def("restart", &PyAscent::restart, "u"_a, "b"_a, "Continue from these dual variables and this multiplier.")
        .def(
            "predicted_gap", [](const PyAscent& a) { return a.self->predicted_gap(); },
            "Duality gap now, as predicted from the slacks of the last epochs.")
        .def(
            "free", [](const PyAscent& a) { return a.self->free(); },
            "Number of rows whose dual variable is inside its interval.")
        .def_static(
            "stalled",
            [](View slacks, int64_t lately) { return Ascent::is_stalled(slacks.data(), length(slacks), lately); },
            "slacks"_a, "lately"_a, "Whether the slacks of the epochs no longer shrink.")
        .def_static("jump", &Ascent::jump, "first"_a, "second"_a, "third"_a,
                    "Extrapolated rest of a geometric sequence of steps, or 0 where they are not steady.")
        .def_prop_ro("class_start", &PyAscent::class_start,
                     "Start from the class sums: u of either class, dual value, whether it is near; or None.")
        .def_prop_ro(
            "listed", [](const PyAscent& a) { return a.self->listed(); }, "Number of rows that epochs visit.")
        .def_prop_ro("epochs", &number_of<int64_t, &Ascent::epochs>)
        .def_prop_ro("primal", &number_of<double, &Ascent::primal>)
        .def_prop_ro("hardness", &number_of<double, &Ascent::hardness>)
        .def_prop_ro("stiffness", &number_of<double, &Ascent::stiffness>)
        .def_prop_ro("started_near", &number_of<bool, &Ascent::started_near>)
        .def_prop_ro("overflown", &number_of<bool, &Ascent::overflown>)
        .def_prop_rw("passes", &number_of<double, &Ascent::passes>, &set_number<double, &Ascent::passes>,
                     "Passes over the rows so far.")
        .def_prop_rw("budget", &number_of<double, &Ascent::budget>, &set_number<double, &Ascent::budget>,
                     "Budget in passes: ascent ends if more are predicted.")
        .def_prop_rw("most", &number_of<int64_t, &Ascent::most>, &set_number<int64_t, &Ascent::most>,
                     "Maximum number of epochs, or -1; if given, the budget is ignored.")
        .def_prop_ro(
            "e", [](const PyAscent& a) { return a.self->state[0]; }, "The sum of s sign u.")
        .def_prop_ro("u", &array_of<&Ascent::u>, "Dual variables [n].")
        .def_prop_ro("theta", &array_of<&Ascent::theta>, "Weights and intercept [d + 1].")
        .def_prop_ro("z", &array_of<&Ascent::z>, "Scores [n] as each row last saw them.")
        .def_prop_ro("along", &array_of<&Ascent::along>, "Products of the rows with the centre [n], or empty.")
        .def_prop_ro("centre", &array_of<&Ascent::c>, "The centre of the rows [d], or empty.");
}

}  // namespace

void bind_dual(nb::module_& m) {
    bind_ascent(m);
    m.def("sampled_mean", &sampled_mean_of, "rows"_a, "targets"_a, "Mean of s |x|^2 over a sample of the rows.");
    m.def(
        "kept_share", [](const PyRows& x) { return kept_share(x.rows); }, "rows"_a,
        "Share of nonzero numbers in a sample of dense rows.");
    m.def("closed_values", &closed_values_of, "sums"_a, "theta"_a, "lam"_a, "intercept"_a,
          "Primal and dual value from the sums of `closing`, without a rounding allowance.");
    m.def("dual_cd", &dual_cd, "rows"_a, "targets"_a, "loss"_a, "k0"_a, "k1"_a, "order"_a, "bucket"_a, "list"_a.none(),
          "far"_a, "lam"_a, "stiffness"_a, "norms"_a, "u"_a, "z"_a, "b"_a, "theta"_a, "state"_a,
          "along"_a.none() = nb::none(), "centre"_a = 0.0, "two"_a = false,
          "Visit the buckets order[k0:k1] of `bucket` entries of the list each (of all rows, if None); move u, z, b, "
          "theta = (w, b0) and state = (e, slack, largest slope, f). Entries of the list below 0 have left it.");
    m.def("class_sums", &class_sums, "rows"_a, "targets"_a, "lo"_a, "hi"_a, "norms"_a, "out"_a,
          "Squared norms of rows [lo, hi), and the sums of s x of either sign: out [2 d]. One pass.");
    m.def("two_scores", &two_scores, "rows"_a, "lo"_a, "hi"_a, "a"_a, "b"_a, "za"_a, "zb"_a,
          "Products of rows [lo, hi) with two vectors in one pass: za [n], zb [n].");
    m.def("remaining", &remaining, "list"_a,
          "Move the entries that are not negative to the front of the list. Returns their number.");
    m.def("best_intercept", &best_intercept, "targets"_a, "loss"_a, "free"_a, "z"_a, "b"_a, "reach"_a, "fine"_a,
          "The intercept that minimises the losses at the scores z, and their sum there.");
    m.def("best_among", &best_among, "targets"_a, "loss"_a, "free"_a, "list"_a, "z"_a, "u"_a, "e"_a, "b"_a, "reach"_a,
          "fine"_a,
          "The best intercept while only the rows of the list may follow it; e is the sum of s sign u over all rows.");
    m.def("arrange", &arrange, "rows"_a, "order"_a, "seed"_a, "list"_a.none() = nb::none(),
          "Shuffle the entries of the order, places in the list (or rows, if None), short rows of a length side by "
          "side.");
    m.def("balance", &balance, "targets"_a, "loss"_a, "z"_a, "seen"_a, "u"_a,
          "Move u to sum s sign u = 0 where that costs the dual value least.");
    m.def("shifted_sums", &shifted_sums, "targets"_a, "loss"_a, "lo"_a, "hi"_a, "z"_a, "b"_a, "out"_a,
          "Sums at the scores z + b: out [3] += sum s l, sum s sign l', sum s l''.");
    m.def("shuffle", &shuffle, "order"_a, "seed"_a, "Permute the entries in place by a seed.");
    m.def("list_dots", &list_dots, "rows"_a, "list"_a, "v"_a, "out"_a, "Products out[k] = x.v of the listed rows.");
    m.def("list_add", &list_add, "rows"_a, "list"_a, "a"_a, "v"_a, "Combination of the listed rows: v [d] += sum a x.");
    m.def("quantile", &quantile, "x"_a, "weight"_a, "target"_a,
          "The least x with at least `target` weight at or below it, or NaN if the search meets one. Permutes both "
          "arrays.");
}

}  // namespace linsep::python
