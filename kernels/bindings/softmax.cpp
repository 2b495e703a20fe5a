// Losses that couple the classes, softmax and multiclass hinge: kernels/softmax/.
#include "bindings/types.hpp"
#include "core/helper_thread.hpp"

namespace linsep::python {
namespace {

Size closing_size(const PyRows& x, const PyClasses& y) {
    return 7 + y.padded() + (x.d() + 1) * y.padded() + y.k() * x.d();
}
constexpr const char* kClosingSize = "out has 7 + K + (d + 1) K + k d entries";

// Check that W is (d + 1, K), where K is k padded to a multiple of 8
template <class A>
void weights_of(const A& W, const PyRows& x, const PyClasses& y, const char* what) {
    matrix_of(W, x.d() + 1, y.padded(), what);
}

void softmax_sweep(const PyRows& x, const PyClasses& y, int64_t lo, int64_t hi, In2 W, Out out,
                   std::optional<OutPlanes> p, std::optional<Out> cross, bool single) {
    x.range(lo, hi);
    y.match(x);
    if (p) y.match_planes(*p);
    weights_of(W, x, y, "W is (d + 1, k padded to a multiple of 8)");
    vector_of(out, 3 + (x.d() + 1) * y.padded(), "out has 3 + (d + 1) K entries");
    if (cross) vector_of(*cross, y.padded() * y.padded(), "cross has K K entries");
    nb::gil_scoped_release release;
    const int64_t k = y.view.k;
    const auto room = scratch(softmax_scratch(x.rows, k) + (cross ? panel_scratch(k, k) : 0));
    table->softmax_sweep(x.rows, lo, hi, y.view, W.data(), single, out.data(), data(p), p ? p->stride(0) : 0,
                         data(cross), room.get());
}

void softmax_hess_vec(const PyRows& x, const PyClasses& y, int64_t lo, int64_t hi, InPlanes p, In2 V, Out out) {
    x.range(lo, hi);
    y.match(x);
    y.match_planes(p);
    weights_of(V, x, y, "V is (d + 1, k padded to a multiple of 8)");
    vector_of(out, (x.d() + 1) * y.padded(), "out has (d + 1) K entries");
    nb::gil_scoped_release release;
    const auto room = scratch(softmax_scratch(x.rows, y.view.k));
    table->softmax_hess_vec(x.rows, lo, hi, y.view, p.data(), p.stride(0), V.data(), out.data(), room.get());
}

void softmax_product(const PyRows& x, const PyClasses& y, int64_t lo, int64_t hi, std::optional<InPlanes> p, In2 W,
                     In2 V, bool single, Out out) {
    x.range(lo, hi);
    y.match(x);
    need(is_dense(x.rows.store) || p, "sparse rows need the probabilities");
    if (p) y.match_planes(*p);
    weights_of(W, x, y, "W is (d + 1, k padded to a multiple of 8)");
    weights_of(V, x, y, "V is (d + 1, k padded to a multiple of 8)");
    vector_of(out, (x.d() + 1) * y.padded(), "out has (d + 1) K entries");
    nb::gil_scoped_release release;
    const int64_t k = y.view.k;
    const auto room = scratch(softmax_scratch(x.rows, k) + panel_scratch(x.rows.d, k) + kPanelRows * panel_columns(k));
    table->softmax_product(x.rows, lo, hi, y.view, data(p), p ? p->stride(0) : 0, W.data(), V.data(), single,
                           out.data(), room.get());
}

bool softmax_is_packed(const PyRows& x, int64_t k) { return softmax_packed(is_dense(x.rows.store), x.rows.d, k); }

void softmax_ray(const PyRows& x, const PyClasses& y, int64_t lo, int64_t hi, In2 W, In2 D, In steps, Out out) {
    x.range(lo, hi);
    y.match(x);
    weights_of(W, x, y, "W is (d + 1, k padded to a multiple of 8)");
    weights_of(D, x, y, "D is (d + 1, k padded to a multiple of 8)");
    vector_of(out, 2 * length(steps), "out has two entries per step");
    nb::gil_scoped_release release;
    const auto room = scratch(softmax_scratch(x.rows, y.view.k));
    table->softmax_ray(x.rows, lo, hi, y.view, W.data(), D.data(), steps.data(), length(steps), out.data(), room.get());
}

void softmax_cross(const PyClasses& y, int64_t lo, int64_t hi, InPlanes p, Out out) {
    y.match_planes(p);
    need(0 <= lo && lo <= hi && hi <= y.n(), "rows out of range");
    vector_of(out, y.padded() * y.padded(), "out has K K entries");
    nb::gil_scoped_release release;
    const auto room = scratch(256);
    table->softmax_cross(lo, hi, y.view, p.data(), p.stride(0), out.data(), room.get());
}

void softmax_hessian(const PyRows& x, const PyClasses& y, int64_t lo, int64_t hi, InPlanes p, In mu, Out out) {
    x.range(lo, hi);
    y.match(x);
    y.match_planes(p);
    vector_of(mu, x.d(), "mu has d entries");
    const int64_t k = y.view.k;
    vector_of(out, Size(k * (k + 1) / 2) * (x.d() + 1) * (x.d() + 1),
              "out has a (d + 1, d + 1) block for each pair of classes");
    nb::gil_scoped_release release;
    const auto room = scratch(gram_rows<double>(x.rows.d) + gram_scratch(x.rows));
    table->softmax_hessian(x.rows, lo, hi, y.view, p.data(), p.stride(0), mu.data(), out.data(), room.get());
}

void softmax_closing(const PyRows& x, const PyClasses& y, int64_t lo, int64_t hi, std::optional<View2> base, View2 step,
                     In2 W, In bound, std::optional<In2> dual, Out out) {
    x.range(lo, hi);
    y.match(x);
    if (base) weights_of(*base, x, y, "base is (d + 1, K)");
    weights_of(step, x, y, "step is (d + 1, K)");
    weights_of(W, x, y, "W is (d + 1, K)");
    vector_of(bound, x.d() + 1, "bound has d + 1 entries");
    if (dual) matrix_of(*dual, x.n(), y.view.k, "dual is (n, k)");
    vector_of(out, closing_size(x, y), kClosingSize);
    nb::gil_scoped_release release;
    const auto room = scratch(softmax_scratch(x.rows, y.view.k));
    table->softmax_closing(x.rows, lo, hi, y.view, data(base), step.data(), W.data(), bound.data(), data(dual),
                           out.data(), room.get());
}

int softmax_chunk(const PyRows& x, int64_t k) {
    some_classes(k);
    return table->softmax_chunk(x.rows, k);
}

std::tuple<int, double, bool> softmax_steps(const PyRows& x, const PyClasses& y, InPlanes p, double lam, bool intercept,
                                            In mu, In2 U, In2 scale, In accuracy, int most, bool two, In2 g, Out2 D,
                                            Out2 R, double first) {
    y.match(x);
    y.match_planes(p);
    const int64_t blocks = length(scale);
    const Size order = x.d() + 1;
    need(blocks == 1 || blocks == y.view.k, "one block, or one for each class");
    weights_of(g, x, y, "g is (d + 1, k padded to a multiple of 8)");
    for (const Out2* a : {&D, &R}) weights_of(*a, x, y, "D and R are as g");
    vector_of(mu, x.d(), "mu has d entries");
    matrix_of(U, blocks * order, order, "U has d + 1 rows and columns for each block");
    matrix_of(scale, blocks, order, "scale has d + 1 entries for each block");
    vector_of(accuracy, 6, "accuracy has 6 entries");
    const double* a = accuracy.data();
    nb::gil_scoped_release release;
    HelperThread thread(two);
    const StepJob job{lam,       a[0], a[1],      a[2],     a[3],         a[4],   a[5] != 0.0,
                      intercept, most, mu.data(), U.data(), scale.data(), blocks, thread.helper()};
    bool done = false;
    const int products = in_arena([&](Arena* arena) {
        return table->softmax_steps(x.rows, y.view, job, p.data(), p.stride(0), g.data(), D.data(), R.data(), &first,
                                    &done, arena);
    });
    return {products, first, done};
}

std::tuple<int, int, int, int, double> softmax_newton(const PyRows& x, const PyClasses& y, double lam, int max_steps,
                                                      bool intercept, Out2 W, Out2 base, Out2 step, Out sums) {
    y.match(x);
    for (const Out2* a : {&W, &base, &step})
        weights_of(*a, x, y, "W, base and step are (d + 1, k padded to a multiple of 8)");
    need(lam > 0.0, "lam must be positive");
    vector_of(sums, closing_size(x, y), "sums has 7 + K + (d + 1) K + k d entries");
    nb::gil_scoped_release release;
    const NewtonJob job{lam, 0.0, max_steps, intercept, 1};
    const NewtonReport r = in_arena([&](Arena* arena) {
        return table->softmax_newton(x.rows, y.view, job, W.data(), base.data(), step.data(), sums.data(), arena);
    });
    return {r.status, r.steps, r.sweeps, r.grams, r.primal};
}

void crammer_singer_step(const PyClasses& y, int64_t lo, int64_t hi, In2 z, std::optional<In2> dz, double t, In2 p0,
                         double sigma, Out2 p, Out out) {
    need(0 <= lo && lo <= hi && hi <= y.n(), "rows out of range");
    for (const In2* a : {&z, &p0}) matrix_of(*a, y.n(), y.padded(), "z and p0 are (n, K)");
    if (dz) matrix_of(*dz, y.n(), y.padded(), "dz is (n, K)");
    matrix_of(p, y.n(), y.padded(), "p is (n, K)");
    vector_of(out, 4, "out has 4 entries");
    nb::gil_scoped_release release;
    table->crammer_singer_step(lo, hi, y.view, z.data(), data(dz), t, p0.data(), sigma, p.data(), out.data());
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

void crammer_singer_ascend(const PyRows& x, const PyClasses& y, int64_t k0, int64_t k1, IdView order, int64_t bucket,
                           double lam, double stiffness, In norms, Out2 p, Out2 W, Out state) {
    y.match(x);
    need(bucket >= 1 && lam > 0.0 && stiffness >= 0.0, "bucket and lam are positive, stiffness is not negative");
    need(0 <= k0 && k0 <= k1 && k1 <= length(order), "buckets out of range");
    for (int64_t k = k0; k < k1; ++k)
        need(order.data()[k] >= 0 && order.data()[k] <= (x.rows.n - 1) / bucket,
             "order names a bucket beyond the rows");
    vector_of(norms, x.n(), "norms has n entries");
    matrix_of(p, x.n(), y.padded(), "p is (n, K)");
    weights_of(W, x, y, "W is (d + 1, K)");
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
    weights_of(W, x, y, "W is (d + 1, K)");
    vector_of(bound, x.d() + 1, "bound has d + 1 entries");
    matrix_of(dual, x.n(), y.view.k, "dual is (n, k)");
    vector_of(out, closing_size(x, y), kClosingSize);
    nb::gil_scoped_release release;
    const auto room = scratch(softmax_scratch(x.rows, y.view.k));
    table->crammer_singer_closing(x.rows, lo, hi, y.view, W.data(), bound.data(), dual.data(), out.data(), room.get());
}

using namespace nb::literals;

void bind_crammer_singer(nb::module_& m) {
    m.def("crammer_singer_step", &crammer_singer_step, "classes"_a, "lo"_a, "hi"_a, "z"_a, "dz"_a.none(), "t"_a, "p0"_a,
          "sigma"_a, "p"_a, "out"_a,
          "Dual variables p (n, K) of the smoothed multiclass hinge at the scores z + t dz, and its value and "
          "derivatives by t: out [4].");
    m.def("crammer_singer_gradient", &crammer_singer_gradient, "rows"_a, "classes"_a, "lo"_a, "hi"_a, "p"_a, "out"_a,
          "Gradient of the multiclass hinge with dual variables p (n, K): out [(d + 1) K].");
    m.def(
        "crammer_singer_ascend", &crammer_singer_ascend, "rows"_a, "classes"_a, "k0"_a, "k1"_a, "order"_a, "bucket"_a,
        "lam"_a, "stiffness"_a, "norms"_a, "p"_a, "W"_a, "state"_a,
        "Visit the buckets order[k0:k1] by dual coordinate ascent; moves p (n, K), W (d + 1, K) and state (class sums, "
        "slack).");
    m.def("crammer_singer_closing", &crammer_singer_closing, "rows"_a, "classes"_a, "lo"_a, "hi"_a, "W"_a, "bound"_a,
          "dual"_a, "out"_a, "Sums of a certificate of the multiclass hinge, in the layout of `softmax_closing`.");
}

}  // namespace

void bind_softmax(nb::module_& m) {
    m.def("softmax_sweep", &softmax_sweep, "rows"_a, "classes"_a, "lo"_a, "hi"_a, "W"_a, "out"_a,
          "p"_a.none() = nb::none(), "cross"_a.none() = nb::none(), "single"_a = false,
          "Softmax losses and their gradient at W (d + 1, K) in one pass: out [3 + (d + 1) K]. p (k, n) receives the "
          "probabilities, cross [K K] += sum s p p' (K, K) in single precision. `single`: products through packed "
          "panels are in single precision.");
    m.def("softmax_hess_vec", &softmax_hess_vec, "rows"_a, "classes"_a, "lo"_a, "hi"_a, "p"_a, "V"_a, "out"_a,
          "Product of the Hessian at the probabilities p with V (d + 1, K): out [(d + 1) K]. One pass.");
    m.def("softmax_product", &softmax_product, "rows"_a, "classes"_a, "lo"_a, "hi"_a, "p"_a.none(), "W"_a, "V"_a,
          "single"_a, "out"_a,
          "Product of the Hessian with V (d + 1, K) through packed panels, in single or double precision: out [(d + 1) "
          "K]. The probabilities are p (k, n), or, if p is None (dense rows), those at W. One pass.");
    m.def("softmax_is_packed", &softmax_is_packed, "rows"_a, "k"_a,
          "Whether passes of the softmax loss over these rows go through packed panels.");
    m.def("softmax_ray", &softmax_ray, "rows"_a, "classes"_a, "lo"_a, "hi"_a, "W"_a, "D"_a, "steps"_a, "out"_a,
          "Softmax losses along a ray: out [2 per step t] += value and derivative by t, at W + t D.");
    m.def("softmax_cross", &softmax_cross, "classes"_a, "lo"_a, "hi"_a, "p"_a, "out"_a,
          "Second moments of the probabilities: out [K K] += sum s p p'.");
    m.def("softmax_hessian", &softmax_hessian, "rows"_a, "classes"_a, "lo"_a, "hi"_a, "p"_a, "mu"_a, "out"_a,
          "Hessian of the softmax losses, a block of order d + 1 for each pair of classes, in coordinates centred at "
          "mu.");
    m.def("softmax_closing", &softmax_closing, "rows"_a, "classes"_a, "lo"_a, "hi"_a, "base"_a.none(), "step"_a, "W"_a,
          "bound"_a, "dual"_a.none(), "out"_a,
          "Sums of a certificate of the softmax loss in one pass, laid out as kernels/softmax/closing.hpp states. The "
          "dual point is `dual` (n, k), or the Newton-dual one of base and step; base None stands for W - step.");
    m.def("softmax_chunk", &softmax_chunk, "rows"_a, "k"_a,
          "Number of rows that the softmax passes add up in registers before they add to their outputs.");
    m.def("softmax_steps", &softmax_steps, "rows"_a, "classes"_a, "p"_a, "lam"_a, "intercept"_a, "mu"_a, "U"_a,
          "scale"_a, "accuracy"_a, "most"_a, "two"_a, "g"_a, "D"_a, "R"_a, "first"_a,
          "Continue D and its residual R = -g - H D by conjugate gradients, preconditioned by the factors U, scale of "
          "blocks at mu. accuracy: objective, tol, near, rough, fine, to the end. Returns the products made, the first "
          "rho, and whether it is done.");
    m.def("softmax_newton", &softmax_newton, "rows"_a, "classes"_a, "lam"_a, "max_steps"_a, "intercept"_a, "W"_a,
          "base"_a, "step"_a, "sums"_a,
          "Fit the softmax loss with lam/2 |W|^2 by Newton's method, from the start W. base, step and sums describe "
          "the dual point as `softmax_closing` does. Returns status, steps, sweeps, Gram matrices and primal value.");
    bind_crammer_singer(m);
}

}  // namespace linsep::python
