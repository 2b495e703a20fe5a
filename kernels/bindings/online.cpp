// Perceptron and stochastic gradient descent: kernels/online/.
#include <initializer_list>
#include <stdexcept>

#include "bindings/types.hpp"

namespace linsep::python {
namespace {

constexpr int64_t kSteps = int64_t{1} << 62;  // maximum number of steps

template <class E>
E one_of(const std::string& name, std::initializer_list<const char*> names, const char* what) {
    int at = 0;
    for (const char* known : names) {
        if (name == known) return static_cast<E>(at);
        ++at;
    }
    throw std::invalid_argument(what);
}

void perceptron(const PyRows& x, View sign, View lengths, const std::string& select, bool normalised, bool intercept,
                bool online, int64_t max_updates, int64_t budget, std::optional<Ids> order, Out theta, IdOut counts,
                Out numbers, IdOut updated, Out norms, std::optional<Out> sum) {
    const Select how = one_of<Select>(select, {"cyclic", "first", "listed", "worst"}, "no such order of rows");
    vector_of(sign, x.n(), "sign has n entries");
    vector_of(lengths, x.n(), "lengths has n entries");
    vector_of(theta, x.d() + 1, "theta has d + 1 entries");
    vector_of(numbers, 2, "numbers has two entries");
    const int64_t* c = counts.data();
    need(length(counts) >= 5 && 0 <= c[0] && c[0] <= x.n() && c[1] >= 0 && c[2] >= 0 && c[3] >= 0 && -1 <= c[4] &&
             c[4] < x.n(),
         "counts are place, rows since the last mistake, updates, rows visited, row of the least margin or -1");
    need(length(updated) == length(norms), "updated and norms differ in length");
    need(budget >= 1, "budget is positive");
    if (sum) vector_of(*sum, x.d() + 1, "sum has d + 1 entries");
    need((how == Select::listed) == order.has_value(), "an order of rows is given if and only if it is listed");
    if (order) {
        need(length(*order) == x.n(), "order has n entries");
        in_range(*order, 0, x.rows.n, "a row is named that does not exist");
    }
    nb::gil_scoped_release release;
    const PerceptronJob job{
        how,         normalised,    intercept,      online,          max_updates,    budget,       lengths.data(),
        data(order), counts.data(), numbers.data(), length(updated), updated.data(), norms.data(), data(sum)};
    table->perceptron(x.rows, sign.data(), job, theta.data());
}

void sgd(const PyRows& x, const PyClasses& y, const PyLoss& l, const std::string& schedule, View eta0, View decay,
         double lam, double total, int64_t batch, int64_t first, bool intercept, IdView draws, Out2 W,
         std::optional<Out2> sums) {
    y.match(x);
    const Schedule how =
        one_of<Schedule>(schedule, {"constant", "inverse", "inverse_sqrt", "listed"}, "no such schedule");
    const int64_t columns = y.view.k == 2 ? 1 : y.view.k, count = length(draws);
    need(batch >= 1 && count % batch == 0, "draws are whole batches");
    need(first >= 0 && first < kSteps && total > 0.0 && lam >= 0.0,
         "first is at least 0 and below 2^62, lam is not negative, total is positive");
    const int64_t sizes = how == Schedule::listed ? count / batch : columns;
    need(length(eta0) == sizes && (how == Schedule::listed || length(decay) == sizes),
         "eta0 and decay have an entry per column, or eta0 one per step if listed");
    matrix_of(W, columns, x.d() + 1, "W and sums are (columns, d + 1)");
    if (sums) matrix_of(*sums, columns, x.d() + 1, "W and sums are (columns, d + 1)");
    in_range(draws, 0, x.rows.n, "a row is named that does not exist");
    nb::gil_scoped_release release;
    const auto room = scratch(sgd_scratch(count == 0 ? 1 : batch, columns));
    table->sgd(x.rows, y.view, l.spec, {how, eta0.data(), decay.data(), lam, total, batch, first, intercept},
               draws.data(), count, W.data(), data(sums), room.get());
}

void losses_k(const PyRows& x, const PyClasses& y, const PyLoss& l, int64_t lo, int64_t hi, In2 W, Ids of, Out out) {
    x.range(lo, hi);
    y.match(x);
    const int64_t K = width(W);
    need(K % 8 == 0, "the columns of W are padded to a multiple of 8");
    matrix_of(W, x.d() + 1, K, "W has d + 1 rows");
    need(length(of) == K, "of names a class for each column");
    vector_of(out, K, "out has an entry per column");
    nb::gil_scoped_release release;
    const auto room = scratch(losses_k_scratch(K));
    table->losses_k(x.rows, lo, hi, y.view, l.spec, W.data(), K, of.data(), out.data(), room.get());
}

}  // namespace

void bind_online(nb::module_& m) {
    using namespace nb::literals;
    m.def("perceptron", &perceptron, "rows"_a, "sign"_a, "lengths"_a, "select"_a, "normalised"_a, "intercept"_a,
          "online"_a, "max_updates"_a, "budget"_a, "order"_a.none(), "theta"_a, "counts"_a, "numbers"_a, "updated"_a,
          "norms"_a, "sum"_a.none(),
          "Perceptron updates of theta, until a limit or a pass without one; counts and numbers carry the state from "
          "call to call, updated and norms record the updates (kernels/online/passes.hpp).");
    m.def("sgd", &sgd, "rows"_a, "classes"_a, "loss"_a, "schedule"_a, "eta0"_a, "decay"_a, "lam"_a, "total"_a,
          "batch"_a, "first"_a, "intercept"_a, "draws"_a, "W"_a, "sums"_a.none(),
          "Stochastic subgradient steps first, first + 1, ... at batches of the drawn rows; moves W (columns, d + 1), "
          "and adds every iterate to sums.");
    m.def(
        "losses_k", &losses_k, "rows"_a, "classes"_a, "loss"_a, "lo"_a, "hi"_a, "W"_a, "of"_a, "out"_a,
        "Losses of K weight vectors in one pass: out[j] += the losses of column j of W (d + 1, K), which is for class "
        "of[j].");
}

}  // namespace linsep::python
