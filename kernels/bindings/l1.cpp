// Fits with an L1 penalty: kernels/l1/.
#include "bindings/types.hpp"

namespace linsep::python {
namespace {

int64_t quadratic_cd(View2 S, double l1, double tol, int64_t max_sweeps, Out x, Out slope) {
    const int64_t k = length(S);
    matrix_of(S, k, k, "S is square");
    vector_of(x, k, "x has an entry per row of S");
    vector_of(slope, k, "slope has an entry per row of S");
    need(l1 >= 0.0 && tol >= 0.0, "l1 and tol are not negative");
    nb::gil_scoped_release release;
    return table->quadratic_cd(k, S.data(), l1, tol, max_sweeps, x.data(), slope.data());
}

std::tuple<int, int, int, int, double, double> lasso_newton(const PyRows& x, const PyTargets& t, const PyLoss& l,
                                                            double l1, double l2, double tol, int max_steps,
                                                            bool intercept, Out theta, Out base, Out step, Out sums) {
    t.match(x);
    need(l1 > 0.0 && l2 >= 0.0 && tol > 0.0, "l1 and tol are positive, l2 is not negative");
    for (const Out* o : {&theta, &base, &step}) vector_of(*o, x.d() + 1, "theta, base, step have d + 1 entries");
    vector_of(sums, 8 + 2 * x.d(), "sums has 8 + 2 d entries");
    nb::gil_scoped_release release;
    const LassoJob job{l1, l2, tol, intercept, max_steps};
    const NewtonReport r = in_arena([&](Arena* arena) {
        return table->lasso_newton(x.rows, t.view, l.spec, job, theta.data(), base.data(), step.data(), sums.data(),
                                   arena);
    });
    return {r.status, r.steps, r.sweeps, r.grams, r.primal, r.dual};
}

std::tuple<int, int, int, int, double, double> column_newton(const PyRows& x, const PyTargets& t, const PyLoss& l,
                                                             IdView list, IdView first, View weights, View ridges,
                                                             double tol, int max_steps, bool intercept, Out theta,
                                                             Out z, Out base, Out step) {
    const int64_t count = length(list), groups = length(weights);
    in_range(list, 0, x.rows.n, "list names a column beyond the columns");
    need(length(first) == groups + 1, "first has an entry per group and one more");
    vector_of(ridges, groups, "ridges has an entry per group");
    need(first.data()[0] == 0 && first.data()[groups] == count, "the groups cover the list");
    for (int64_t g = 0; g < groups; ++g) {
        need(first.data()[g] < first.data()[g + 1], "every group has a feature");
        need(weights.data()[g] > 0.0 && ridges.data()[g] >= 0.0, "weights are positive, ridges are not negative");
    }
    need(t.n() == x.d(), "targets and columns differ in length");
    need(tol > 0.0, "tol is positive");
    for (const Out* o : {&theta, &base, &step})
        vector_of(*o, count + 1, "theta, base, step have an entry per column and one for the intercept");
    vector_of(z, x.d(), "z has an entry per row");
    nb::gil_scoped_release release;
    const ColumnJob job{list.data(),   count, groups,    first.data(), weights.data(),
                        ridges.data(), tol,   intercept, max_steps};
    const ColumnReport r = in_arena([&](Arena* arena) {
        return table->column_newton(x.rows, t.view, l.spec, job, theta.data(), z.data(), base.data(), step.data(),
                                    arena);
    });
    return {r.status, r.steps, r.sweeps, r.gradients, r.primal, r.gap};
}

}  // namespace

void bind_l1(nb::module_& m) {
    using namespace nb::literals;
    m.def("quadratic_cd", &quadratic_cd, "S"_a, "l1"_a, "tol"_a, "max_sweeps"_a, "x"_a, "slope"_a,
          "Minimise a quadratic with Hessian S plus l1 |x|_1 by coordinate descent; moves x and slope, the gradient of "
          "the quadratic at x. Returns the sweeps made.");
    m.def("lasso_newton", &lasso_newton, "rows"_a, "targets"_a, "loss"_a, "l1"_a, "l2"_a, "tol"_a, "max_steps"_a,
          "intercept"_a, "theta"_a, "base"_a, "step"_a, "sums"_a,
          "Fit min sum s l(m) + l2/2 |w|^2 + l1 |w|_1 by prox-Newton steps, from the start theta. base, step and sums "
          "describe the dual point as `closing` does. Returns status, steps, sweeps, Gram matrices, primal and dual "
          "value.");
    m.def("column_newton", &column_newton, "columns"_a, "targets"_a, "loss"_a, "list"_a, "first"_a, "weights"_a,
          "ridges"_a, "tol"_a, "max_steps"_a, "intercept"_a, "theta"_a, "z"_a, "base"_a, "step"_a,
          "Fit the listed columns with the penalty sum_g weights_g |w_g| + ridges_g/2 |w_g|^2 by prox-Newton steps; "
          "group g has the positions first[g] to first[g + 1] of the list. Moves theta [count + 1] and the scores z "
          "[n]. Returns status, steps, sweeps, gradients, primal value and gap.");
}

}  // namespace linsep::python
