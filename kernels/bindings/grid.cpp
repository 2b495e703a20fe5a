// Many models on the same rows: kernels/grid/.
#include <algorithm>

#include "bindings/types.hpp"

namespace linsep::python {
namespace {

// The n entries of part (0 .. parts - 1, or -1) are checked once by the caller, not in every call.
void part_sweep(const PyRows& x, const PyTargets& t, const PyLoss& l, int64_t lo, int64_t hi, IdView part,
                int64_t parts, View theta, Out out, Out curvature, std::optional<Out> moments) {
    x.range(lo, hi);
    t.match(x);
    need(parts >= 0 && length(part) == x.n(), "part has n entries, and parts is not negative");
    vector_of(theta, x.d() + 1, "theta has d + 1 entries");
    vector_of(out, (Size(parts) + 1) * (x.d() + 2), "out has (parts + 1)(d + 2) entries");
    vector_of(curvature, x.n(), "curvature has n entries");
    if (moments) vector_of(*moments, (Size(parts) + 1) * (x.d() + 1), "moments has (parts + 1)(d + 1) entries");
    nb::gil_scoped_release release;
    table->part_sweep(x.rows, lo, hi, t.view, l.spec, part.data(), parts, theta.data(), out.data(), curvature.data(),
                      data(moments));
}

void part_gram(const PyRows& x, int64_t lo, int64_t hi, IdView part, int64_t parts, View h, View mu, Out out,
               bool single) {
    x.range(lo, hi);
    need(parts >= 0 && length(part) == x.n(), "part has n entries, and parts is not negative");
    vector_of(h, x.n(), "h has n entries");
    vector_of(mu, x.d(), "mu has d entries");
    vector_of(out, (Size(parts) + 1) * (x.d() + 1) * (x.d() + 1), "out has parts + 1 matrices of order d + 1");
    nb::gil_scoped_release release;
    const auto room = scratch(Size(hi - lo) + gram_scratch(x.rows));
    table->part_gram(x.rows, lo, hi, part.data(), parts, h.data(), mu.data(), single, out.data(), room.get());
}

void grid_closing(const PyRows& x, const PyTargets& t, const PyLoss& l, int64_t lo, int64_t hi, IdView part,
                  View2 bases, View2 steps, IdView base_of, IdView part_of, View2 reach, std::optional<Out2> held,
                  IdView slot_of, Out out) {
    x.range(lo, hi);
    t.match(x);
    const int64_t K = width(steps), Kb = width(bases), models = length(base_of);
    const int64_t slots = held ? width(*held) : 0;
    need(K % 8 == 0 && Kb % 8 == 0 && models <= K, "bases and steps have their columns padded to a multiple of 8");
    matrix_of(bases, x.d() + 1, Kb, "bases has d + 1 rows");
    matrix_of(steps, x.d() + 1, K, "steps has d + 1 rows");
    matrix_of(reach, models, 2, "reach has two entries per model");
    need(length(part) == x.n(), "part has n entries");
    need(length(part_of) == models && length(slot_of) == models,
         "base_of, part_of and slot_of have an entry per model");
    in_range(base_of, 0, Kb, "a model names a base that is not there");
    if (held) {
        need(length(*held) == x.n(), "held has n rows");
        in_range(slot_of, 0, slots, "a model names a column of held that is not there");
    }
    vector_of(out, (9 + 2 * x.d()) * K, "out has (9 + 2 d) entries per padded model");
    in_range(part_of, -1, x.rows.n + 1, "a model is trained without a part that cannot be");
    int64_t parts = 0;
    for (int64_t q = 0; q < models; ++q) parts = std::max(parts, part_of.data()[q] + 1);
    nb::gil_scoped_release release;
    const GridJob job{part.data(),    parts,          models,       Kb,         K,     bases.data(),  steps.data(),
                      base_of.data(), part_of.data(), reach.data(), data(held), slots, slot_of.data()};
    in_arena([&](Arena* arena) { table->grid_closing(x.rows, lo, hi, t.view, l.spec, job, out.data(), arena); });
}

}  // namespace

void bind_grid(nb::module_& m) {
    using namespace nb::literals;
    m.def("part_sweep", &part_sweep, "rows"_a, "targets"_a, "loss"_a, "lo"_a, "hi"_a, "part"_a, "parts"_a, "theta"_a,
          "out"_a, "curvature"_a, "moments"_a.none() = nb::none(),
          "Losses and gradients of each part of the rows (part -1: the first sums): out [(parts + 1)(d + 2)]. "
          "curvature [n] becomes s l'', moments [(parts + 1)(d + 1)] the sums of s l'' (x, 1).");
    m.def("part_gram", &part_gram, "rows"_a, "lo"_a, "hi"_a, "part"_a, "parts"_a, "h"_a, "mu"_a, "out"_a,
          "single"_a = false, "Weighted Gram matrix of each part of the rows: out [(parts + 1)(d + 1)^2].");
    m.def("grid_closing", &grid_closing, "rows"_a, "targets"_a, "loss"_a, "lo"_a, "hi"_a, "part"_a, "bases"_a,
          "steps"_a, "base_of"_a, "part_of"_a, "reach"_a, "held"_a.none(), "slot_of"_a, "out"_a,
          "Sums of the certificates of many models in one pass (kernels/grid/closing.hpp states the layout of out). "
          "Model q is bases[base_of] + steps[q], trained without part part_of; held receives the scores of the rows in "
          "that part.");
}

}  // namespace linsep::python
