// The interior point method for losses with one kink: kernels/interior/.
#include "bindings/types.hpp"

namespace linsep::python {
namespace {

void require_kink(const PyLoss& l) {
    need(l.spec.id == LossId::hinge || l.spec.id == LossId::absolute || l.spec.id == LossId::perceptron,
         "this method takes the hinge, absolute and perceptron losses");
}

void kink_margins(const PyRows& x, const PyTargets& t, const PyLoss& l, int64_t lo, int64_t hi, View theta, Out v,
                  Out out) {
    x.range(lo, hi);
    t.match(x);
    require_kink(l);
    vector_of(theta, x.d() + 1, "theta has d + 1 entries");
    vector_of(v, x.n(), "v has n entries");
    vector_of(out, 1, "out has an entry");
    nb::gil_scoped_release release;
    table->kink_margins(x.rows, lo, hi, t.view, l.spec, theta.data(), v.data(), out.data());
}

void sort_rows(const PyRows& x, const PyTargets& t, const PyLoss& l, int64_t lo, int64_t hi, View theta, double tau,
               View mu, View scale, Out v, Out u, Out out) {
    x.range(lo, hi);
    t.match(x);
    require_kink(l);
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

// The state of the rows: `kPlanes` arrays, whose element `first` belongs to row 0.
RowState state_of(const OutPlanes& state, int64_t first, Size n) {
    need(length(state) == kPlanes && state.stride(1) == 1, "the state has 10 contiguous planes");
    need(first >= 0 && first + n <= width(state), "the state has a column per row");
    return {state.data() + first, state.stride(0)};
}

void ipm_central(const PyLoss& l, int64_t lo, int64_t hi, double mu, OutPlanes state) {
    require_kink(l);
    need(0 <= lo && lo <= hi, "rows out of range");
    const RowState s = state_of(state, 0, hi);
    nb::gil_scoped_release release;
    table->ipm_central(lo, hi, l.spec, mu, s);
}

void ipm_gather(const PyRows& x, const PyTargets& t, const PyLoss& l, int64_t lo, int64_t hi, double step,
                OutPlanes state, int64_t first, Out h, Out out) {
    x.range(lo, hi);
    t.match(x);
    require_kink(l);
    const RowState s = state_of(state, first, x.n());
    vector_of(h, x.n(), "h has n entries");
    vector_of(out, 3 + 2 * (x.d() + 1), "out has 2 d + 5 entries");
    nb::gil_scoped_release release;
    table->ipm_gather(x.rows, lo, hi, t.view, l.spec, step, s, h.data(), out.data());
}

double ipm_predict(const PyRows& x, const PyTargets& t, int64_t lo, int64_t hi, View delta, OutPlanes state,
                   int64_t first, Out out) {
    x.range(lo, hi);
    t.match(x);
    vector_of(delta, x.d() + 1, "delta has d + 1 entries");
    const RowState s = state_of(state, first, x.n());
    vector_of(out, 1 + 2 * (x.d() + 1), "out has 2 d + 3 entries");
    nb::gil_scoped_release release;
    return table->ipm_predict(x.rows, lo, hi, t.view, delta.data(), s, out.data());
}

double ipm_correct(const PyRows& x, const PyTargets& t, int64_t lo, int64_t hi, View delta, double mu, OutPlanes state,
                   int64_t first) {
    x.range(lo, hi);
    t.match(x);
    vector_of(delta, x.d() + 1, "delta has d + 1 entries");
    const RowState s = state_of(state, first, x.n());
    nb::gil_scoped_release release;
    return table->ipm_correct(x.rows, lo, hi, t.view, delta.data(), mu, s);
}

void ipm_recentre(const PyRows& x, const PyTargets& t, int64_t lo, int64_t hi, double step, double mu, OutPlanes state,
                  int64_t first, Out out) {
    x.range(lo, hi);
    t.match(x);
    vector_of(out, x.d() + 1, "out has d + 1 entries");
    const RowState s = state_of(state, first, x.n());
    nb::gil_scoped_release release;
    table->ipm_recentre(x.rows, lo, hi, t.view, step, mu, s, out.data());
}

double ipm_attempt(const PyRows& x, const PyTargets& t, int64_t lo, int64_t hi, View delta, double step, double mu,
                   OutPlanes state, int64_t first) {
    x.range(lo, hi);
    t.match(x);
    vector_of(delta, x.d() + 1, "delta has d + 1 entries");
    const RowState s = state_of(state, first, x.n());
    nb::gil_scoped_release release;
    return table->ipm_attempt(x.rows, lo, hi, t.view, delta.data(), step, mu, s);
}

void ipm_adopt(const PyRows& x, const PyTargets& t, int64_t lo, int64_t hi, double step, double mu, OutPlanes state,
               int64_t first) {
    x.range(lo, hi);
    t.match(x);
    const RowState s = state_of(state, first, x.n());
    nb::gil_scoped_release release;
    table->ipm_adopt(lo, hi, t.view, step, mu, s);
}

bool crossover(const PyRows& x, const PyTargets& t, const PyLoss& l, double lam, bool intercept,
               std::optional<In> linear, int rounds, Out theta, Out u, Out v) {
    t.match(x);
    require_kink(l);
    if (linear) vector_of(*linear, x.d() + 1, "the linear term has d + 1 entries");
    vector_of(theta, x.d() + 1, "theta has d + 1 entries");
    vector_of(u, x.n(), "u has n entries");
    vector_of(v, x.n(), "v has n entries");
    nb::gil_scoped_release release;
    return in_arena([&](Arena* arena) {
        return table->crossover(x.rows, t.view, l.spec, lam, intercept, data(linear), rounds, theta.data(), u.data(),
                                v.data(), arena);
    });
}

void make_feasible(const PyTargets& t, const PyLoss& l, bool intercept, Out u) {
    require_kink(l);
    vector_of(u, t.n(), "u has n entries");
    nb::gil_scoped_release release;
    table->make_feasible(t.count(), t.view, l.spec, intercept, u.data());
}

std::tuple<int, int, int, int, bool> interior(const PyRows& x, const PyTargets& t, const PyLoss& l, double lam,
                                              double tol, int max_steps, bool intercept, bool warm, Out theta, Out u,
                                              Out sums) {
    t.match(x);
    require_kink(l);
    vector_of(theta, x.d() + 1, "theta has d + 1 entries");
    vector_of(u, x.n(), "u has n entries");
    vector_of(sums, 8 + 2 * x.d(), "sums has 8 + 2 d entries");
    nb::gil_scoped_release release;
    const InteriorJob job{lam, tol, max_steps, intercept, warm};
    const InteriorReport r = in_arena([&](Arena* arena) {
        return table->interior(x.rows, t.view, l.spec, job, theta.data(), u.data(), sums.data(), arena);
    });
    return {r.status, r.steps, r.sweeps, r.grams, r.exact != 0};
}

}  // namespace

void bind_interior(nb::module_& m) {
    using namespace nb::literals;
    m.def("kink_margins", &kink_margins, "rows"_a, "targets"_a, "loss"_a, "lo"_a, "hi"_a, "theta"_a, "v"_a, "out"_a,
          "Distances v [n] of the margins at theta from the kink, for rows [lo, hi); out [1] += sum s l.");
    m.def("sort_rows", &sort_rows, "rows"_a, "targets"_a, "loss"_a, "lo"_a, "hi"_a, "theta"_a, "tau"_a, "mu"_a,
          "scale"_a, "v"_a, "u"_a, "out"_a,
          "Distances v and dual variables u of the rows beyond a band of half-width tau around the kink, in one pass "
          "with their loss and sums: out [2 d + 5].");
    m.def("ipm_central", &ipm_central, "loss"_a, "lo"_a, "hi"_a, "mu"_a, "state"_a,
          "Dual variables on the central path at mu for the margins of the state.");
    m.def("ipm_gather", &ipm_gather, "rows"_a, "targets"_a, "loss"_a, "lo"_a, "hi"_a, "step"_a, "state"_a, "first"_a,
          "h"_a, "out"_a,
          "Take the step, and sum what the next Newton system needs: weights h [n] of its Gram matrix, out [2 d + 5].");
    m.def("ipm_predict", &ipm_predict, "rows"_a, "targets"_a, "lo"_a, "hi"_a, "delta"_a, "state"_a, "first"_a, "out"_a,
          "Directions of the predictor for the rows. Returns the longest step; out [2 d + 3] has the sums of the "
          "corrector.");
    m.def("ipm_correct", &ipm_correct, "rows"_a, "targets"_a, "lo"_a, "hi"_a, "delta"_a, "mu"_a, "state"_a, "first"_a,
          "Directions of the corrector for the rows. Returns the longest step.");
    m.def("ipm_recentre", &ipm_recentre, "rows"_a, "targets"_a, "lo"_a, "hi"_a, "step"_a, "mu"_a, "state"_a, "first"_a,
          "out"_a, "Right-hand side out [d + 1] of a further centrality correction (Gondzio 1996).");
    m.def("ipm_attempt", &ipm_attempt, "rows"_a, "targets"_a, "lo"_a, "hi"_a, "delta"_a, "step"_a, "mu"_a, "state"_a,
          "first"_a, "Directions with the further correction. Returns the longest step.");
    m.def("ipm_adopt", &ipm_adopt, "rows"_a, "targets"_a, "lo"_a, "hi"_a, "step"_a, "mu"_a, "state"_a, "first"_a,
          "Keep the directions of `ipm_attempt`.");
    m.def("crossover", &crossover, "rows"_a, "targets"_a, "loss"_a, "lam"_a, "intercept"_a, "linear"_a.none(),
          "rounds"_a, "theta"_a, "u"_a, "v"_a,
          "Move theta, u and the margins v from near the optimum to the optimum itself. Returns whether it was found.");
    m.def("make_feasible", &make_feasible, "targets"_a, "loss"_a, "intercept"_a, "u"_a,
          "Move u into its box, and to sum s sign u = 0 if there is an intercept.");
    m.def("interior", &interior, "rows"_a, "targets"_a, "loss"_a, "lam"_a, "tol"_a, "max_steps"_a, "intercept"_a,
          "warm"_a, "theta"_a, "u"_a, "sums"_a,
          "Fit a loss with one kink by Mehrotra's method and crossover; theta is the start if `warm`. u and sums "
          "describe the dual point as `closing` does. Returns status, steps, sweeps, Gram matrices, and whether the "
          "end is exact.");
}

}  // namespace linsep::python
