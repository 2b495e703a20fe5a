// Passes over the rows for pointwise losses: kernels/sums/.
#include "bindings/types.hpp"
#include "sums/enclosure.hpp"

namespace linsep::python {
namespace {

void sweep(const PyRows& x, const PyTargets& t, const PyLoss& l, int64_t lo, int64_t hi, View theta, Out out,
           std::optional<Out> curvature, bool gradient, double blend) {
    x.range(lo, hi);
    t.match(x);
    vector_of(theta, x.d() + 1, "theta has d + 1 entries");
    vector_of(out, gradient ? x.d() + 2 : 1, "out has d + 2 entries");
    if (curvature) vector_of(*curvature, x.n(), "curvature has n entries");
    nb::gil_scoped_release release;
    table->sweep(x.rows, lo, hi, t.view, l.spec, theta.data(), out.data(), data(curvature), gradient, blend);
}

void closing(const PyRows& x, const PyTargets& t, const PyLoss& l, int64_t lo, int64_t hi, View base, View step,
             View theta, std::optional<In> dual, Out out, std::optional<Out> found) {
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
    table->closing(x.rows, lo, hi, t.view, l.spec, base.data(), step.data(), theta.data(), data(dual), out.data(),
                   room.get(), data(found));
}

std::tuple<double, double, double> enclose(In sums, In theta, double lam, bool intercept, double rows) {
    const int64_t d = length(theta) - 1;
    need(d >= 0 && length(sums) == 8 + 2 * d, "sums has 8 + 2 d entries, theta has d + 1");
    const Enclosure e = enclosure(sums.data(), theta.data(), d, lam, intercept, rows);
    return {e.primal, e.bound, e.rounding};
}

void gram(const PyRows& x, int64_t lo, int64_t hi, In h, In mu, Out out, bool single) {
    x.range(lo, hi);
    vector_of(h, x.n(), "h has n entries");
    vector_of(mu, x.d(), "mu has d entries");
    vector_of(out, (x.d() + 1) * (x.d() + 1), "out has (d + 1)^2 entries");
    nb::gil_scoped_release release;
    const auto pack = scratch(gram_scratch(x.rows));
    (single ? table->gram_single : table->gram)(x.rows, lo, hi, h.data(), mu.data(), out.data(), pack.get(), true);
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
    table->moments(x.rows, lo, hi, data(h), out.data());
}

void ray(const PyRows& x, const PyTargets& t, const PyLoss& l, int64_t lo, int64_t hi, View theta, In delta, In steps,
         Out out) {
    x.range(lo, hi);
    t.match(x);
    vector_of(theta, x.d() + 1, "theta has d + 1 entries");
    vector_of(delta, x.d() + 1, "delta has d + 1 entries");
    vector_of(out, 2 * length(steps), "out has two entries per step");
    nb::gil_scoped_release release;
    table->ray(x.rows, lo, hi, t.view, l.spec, theta.data(), delta.data(), steps.data(), length(steps), out.data());
}

bool scores(const PyRows& x, int64_t lo, int64_t hi, View theta, Out z) {
    x.range(lo, hi);
    vector_of(theta, x.d() + 1, "theta has d + 1 entries");
    vector_of(z, hi - lo, "z has an entry per row");
    nb::gil_scoped_release release;
    return table->scores(x.rows, lo, hi, theta.data(), z.data()) == 0.0;
}

void scores_k(const PyRows& x, int64_t lo, int64_t hi, In2 W, Out z) {
    x.range(lo, hi);
    const int64_t K = width(W);
    need(K % 8 == 0, "the columns of W are padded to a multiple of 8");
    matrix_of(W, x.d() + 1, K, "W has d + 1 rows");
    vector_of(z, Size(hi - lo) * K, "z has an entry per row and column of W");
    nb::gil_scoped_release release;
    table->scores_k(x.rows, lo, hi, W.data(), K, z.data());
}

bool sigmoids(const PyRows& x, int64_t lo, int64_t hi, In theta, Out2 p) {
    x.range(lo, hi);
    vector_of(theta, x.d() + 1, "theta has d + 1 entries");
    matrix_of(p, hi - lo, 2, "p has a row of two per row");
    nb::gil_scoped_release release;
    return table->sigmoids(x.rows, lo, hi, theta.data(), p.data()) == 0.0;
}

bool softmaxes(const PyRows& x, int64_t lo, int64_t hi, In2 W, Out2 p) {
    x.range(lo, hi);
    const int64_t k = width(p);
    some_classes(k);
    need(length(p) == hi - lo, "p has a row of k per row");
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

void row_norms(const PyRows& x, int64_t lo, int64_t hi, Out norms) {
    x.range(lo, hi);
    vector_of(norms, x.n(), "norms has n entries");
    nb::gil_scoped_release release;
    table->row_norms(x.rows, lo, hi, norms.data());
}

bool all_finite(const PyRows& x) {
    nb::gil_scoped_release release;
    return table->not_finite(x.rows) == 0.0;
}

void pointwise(const PyLoss& l, In m, Out value, Out slope, Out curvature, Out conjugate) {
    const int64_t n = length(m);
    for (const Out* o : {&value, &slope, &curvature, &conjugate}) vector_of(*o, n, "outputs have n entries");
    table->pointwise(l.spec, n, m.data(), value.data(), slope.data(), curvature.data(), conjugate.data());
}

}  // namespace

void bind_sums(nb::module_& m) {
    using namespace nb::literals;
    m.def("sweep", &sweep, "rows"_a, "targets"_a, "loss"_a, "lo"_a, "hi"_a, "theta"_a, "out"_a,
          "curvature"_a.none() = nb::none(), "gradient"_a = true, "blend"_a = 0.0,
          "Losses and their gradient at theta in one pass over rows [lo, hi): out [d + 2] += sum s l, sum s sign l' "
          "(x, 1). curvature [n] becomes s l'', blended with the secant curvature by `blend` in [0, 1].");
    m.def("closing", &closing, "rows"_a, "targets"_a, "loss"_a, "lo"_a, "hi"_a, "base"_a, "step"_a, "theta"_a,
          "dual"_a.none(), "out"_a, "found"_a.none() = nb::none(),
          "Sums of a certificate in one pass over rows [lo, hi): out [8 + 2 d], laid out as kernels/sums/closing.hpp "
          "states. The dual point is `dual`, or the Newton-dual one of base and step; found [n] receives it.");
    m.def("enclose", &enclose, "sums"_a, "theta"_a, "lam"_a, "intercept"_a, "rows"_a,
          "Primal value, lower bound of the minimum, and rounding allowance, from the sums of `closing`.");
    m.def("gram", &gram, "rows"_a, "lo"_a, "hi"_a, "h"_a, "mu"_a, "out"_a, "single"_a = false,
          "Weighted Gram matrix: out [(d + 1)^2] += sum h (x - mu, 1)(x - mu, 1)', upper triangle. `single` multiplies "
          "in float32.");
    m.def("hess_vec", &hess_vec, "rows"_a, "lo"_a, "hi"_a, "h"_a, "v"_a, "out"_a,
          "Product with the Hessian of the losses: out [d + 1] += sum h (x, 1) (x, 1).v. One pass.");
    m.def("combine", &combine, "rows"_a, "lo"_a, "hi"_a, "a"_a, "out"_a,
          "Linear combination: out [d + 1] += sum a (x, 1).");
    m.def("moments", &moments, "rows"_a, "lo"_a, "hi"_a, "h"_a.none(), "out"_a,
          "Weighted moments of the columns: out [2 d + 1] += sum h x, sum h x^2, sum h; h = 1 if None.");
    m.def("ray", &ray, "rows"_a, "targets"_a, "loss"_a, "lo"_a, "hi"_a, "theta"_a, "delta"_a, "steps"_a, "out"_a,
          "Losses along a ray: out [2 per step t] += sum s l and its derivative by t, at theta + t delta.");
    m.def("scores", &scores, "rows"_a, "lo"_a, "hi"_a, "theta"_a, "z"_a,
          "Scores z [hi - lo] = x.w + b. Returns whether all are finite.");
    m.def("scores_k", &scores_k, "rows"_a, "lo"_a, "hi"_a, "W"_a, "z"_a,
          "Scores z [(hi - lo) K] = (x, 1)'W of K columns, K a multiple of 8.");
    m.def("sigmoids", &sigmoids, "rows"_a, "lo"_a, "hi"_a, "theta"_a, "p"_a,
          "Probabilities p [hi - lo, 2] of both classes. Returns whether all scores are finite.");
    m.def("softmaxes", &softmaxes, "rows"_a, "lo"_a, "hi"_a, "W"_a, "p"_a,
          "Probabilities p [hi - lo, k] of k classes. Returns whether all scores are finite.");
    m.def("reaches", &reaches, "rows"_a, "lo"_a, "hi"_a, "theta"_a, "z"_a,
          "Magnitudes z [hi - lo] = |x|.|w| + |b|, by which the rounding errors of scores are bounded.");
    m.def("row_norms", &row_norms, "rows"_a, "lo"_a, "hi"_a, "norms"_a,
          "Squared norms: norms[i] = |x_i|^2 for rows [lo, hi). One pass.");
    m.def("all_finite", &all_finite, "rows"_a, "Whether all stored numbers are finite. One pass.");
    m.def("pointwise", &pointwise, "loss"_a, "m"_a, "value"_a, "slope"_a, "curvature"_a, "conjugate"_a,
          "Loss l(m), l'(m), l''(m) and conjugate l*(-m) of every entry of m, the conjugate infinite outside its "
          "domain.");
}

}  // namespace linsep::python
