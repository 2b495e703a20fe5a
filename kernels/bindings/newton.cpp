// Newton's method in one call, and small dense linear systems: kernels/newton/, core/cholesky.hpp, core/nnls.hpp.
#include "bindings/types.hpp"
#include "core/helper_thread.hpp"

namespace linsep::python {
namespace {

double spd_solve(In2 A, In b, bool drop, Out x) {
    const int64_t n = length(A);
    matrix_of(A, n, n, "A is square");
    vector_of(b, n, "b has an entry per row of A");
    vector_of(x, n, "x has an entry per row of A");
    nb::gil_scoped_release release;
    const auto room = scratch(n * (n + 2));
    return table->spd_solve(n, A.data(), b.data(), drop, x.data(), room.get());
}

double spd_factor(In2 A, bool drop, Out2 U, Out scale) {
    const int64_t n = length(A);
    matrix_of(A, n, n, "A is square");
    matrix_of(U, n, n, "U is as large as A");
    vector_of(scale, n, "scale has an entry per row of A");
    nb::gil_scoped_release release;
    return table->spd_factor(n, A.data(), drop, U.data(), scale.data());
}

void spd_apply(In2 U, In scale, In b, Out x) {
    const int64_t n = length(U);
    matrix_of(U, n, n, "U is square");
    vector_of(scale, n, "scale has an entry per row of U");
    vector_of(b, n, "b has an entry per row of U");
    vector_of(x, n, "x has an entry per row of U");
    nb::gil_scoped_release release;
    table->spd_apply(n, U.data(), scale.data(), b.data(), x.data());
}

std::tuple<int, int> nnls(In2 A, In f, double tol, int max_steps, Out x, Out r) {
    const int64_t m = length(A), p = width(A);
    vector_of(f, p, "f has an entry per column of A");
    vector_of(x, m, "x has an entry per row of A");
    vector_of(r, p, "r has an entry per column of A");
    nb::gil_scoped_release release;
    const NewtonReport found = in_arena(
        [&](Arena* arena) { return table->nnls(m, p, A.data(), f.data(), tol, max_steps, x.data(), r.data(), arena); });
    return {found.status, found.steps};
}

std::tuple<int, int, int, int, double, double> newton(const PyRows& x, const PyTargets& t, const PyLoss& l, double lam,
                                                      double tol, int max_steps, bool intercept, bool polish, bool two,
                                                      Out theta, Out base, Out step, Out sums) {
    t.match(x);
    for (const Out* o : {&theta, &base, &step}) vector_of(*o, x.d() + 1, "theta, base, step have d + 1 entries");
    vector_of(sums, 8 + 2 * x.d(), "sums has 8 + 2 d entries");
    nb::gil_scoped_release release;
    HelperThread thread(two);
    const NewtonJob job{lam, tol, max_steps, intercept, polish, thread.helper()};
    const NewtonReport r = in_arena([&](Arena* arena) {
        return table->newton(x.rows, t.view, l.spec, job, theta.data(), base.data(), step.data(), sums.data(), arena);
    });
    return {r.status, r.steps, r.sweeps, r.grams, r.primal, r.dual};
}

}  // namespace

void bind_newton(nb::module_& m) {
    using namespace nb::literals;
    m.def("spd_factor", &spd_factor, "A"_a, "drop"_a, "U"_a, "scale"_a,
          "Cholesky factor U'U of A scaled to unit diagonal. Returns the least pivot; `drop` replaces pivots that are "
          "lost to rounding.");
    m.def("spd_apply", &spd_apply, "U"_a, "scale"_a, "b"_a, "x"_a, "Solve A x = b by a factor of `spd_factor`.");
    m.def("spd_solve", &spd_solve, "A"_a, "b"_a, "drop"_a, "x"_a,
          "Solve A x = b, A symmetric and positive definite, with one step of refinement. Returns the least pivot.");
    m.def("nnls", &nnls, "A"_a, "f"_a, "tol"_a, "max_steps"_a, "x"_a, "r"_a,
          "Non-negative least squares min |A'x - f| over x >= 0, from the start x. r becomes the residual. Returns "
          "status and steps.");
    m.def("newton", &newton, "rows"_a, "targets"_a, "loss"_a, "lam"_a, "tol"_a, "max_steps"_a, "intercept"_a,
          "polish"_a, "two"_a, "theta"_a, "base"_a, "step"_a, "sums"_a,
          "Fit min lam/2 |w|^2 + sum s l(m) by Newton's method, from the start theta. base, step and sums describe the "
          "dual point as `closing` does. A second thread helps if `two`; the bits are the same. Returns status, steps, "
          "sweeps, Gram matrices, primal and dual value.");
}

}  // namespace linsep::python
