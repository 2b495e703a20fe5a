// Arguments and results of the kernels, independent of Python and of the instruction set (core/kernels.hpp lists the
// kernels). Functions are static: the linker must not merge those compiled for different instruction sets.
#pragma once
#include <cstdint>

namespace linsep {

using i64 = std::int64_t;

enum class Store { dense64, dense32, csr64, csr32 };
static inline bool is_dense(Store store) { return store == Store::dense64 || store == Store::dense32; }

// n rows of d features, in double or single precision. Dense: C order in `values`. CSR: `values`, `indices`, `starts`.
struct Rows {
    Store store;
    i64 n, d;
    const void* values;
    const std::int32_t* indices;
    const i64* starts;
};

// Margin of row i: m_i = sign_i * z_i + offset_i; weight_i multiplies its loss. Null offset means 0, null weight 1.
struct Targets {
    const double* sign;
    const double* offset;
    const double* weight;
};

enum class LossId {
    logistic,
    exponential,
    squared,
    squared_hinge,
    huberised_hinge,
    huber,
    hinge,
    absolute,
    perceptron
};
// Parameters of a loss: the width of its quadratic part, and the margin at which a loss of residuals (squared, huber,
// absolute) is 0. The others ignore `centre`: the perceptron loss has its kink at 0, all others at 1.
struct Shape {
    double width = 1.0, centre = 1.0;
};
struct LossSpec {
    LossId id;
    Shape shape{};
};

// Margin of the kink, or of the vertex of the quadratic part: the centre for losses of residuals, 0 for the perceptron,
// 1 for the others.
static inline double kink_of(LossSpec spec) {
    switch (spec.id) {
        case LossId::squared:
        case LossId::huber:
        case LossId::absolute:
            return spec.shape.centre;
        default:
            return spec.id == LossId::perceptron ? 0.0 : 1.0;
    }
}

// The dense Gram kernel packs gram_rows rows at a time into gram_scratch doubles: panels of a few columns, stored row
// by row (core/gram.hpp). The number of rows of a panel is odd, so that the same row of all panels does not map to the
// same cache set.
constexpr int kMaxGramRows = 512, kManyGramRows = 256, kMaxPanel = 24;
constexpr i64 panel_rows(i64 rows) { return rows | 1; }
template <class E>
static inline int gram_rows(i64 d) {
    const i64 fit = 32768 / (d + 1);  // 256 KiB
    return static_cast<int>(sizeof(E) == 4 || fit < kManyGramRows ? kManyGramRows
                            : fit > kMaxGramRows                  ? kMaxGramRows
                                                                  : fit);
}
template <class E>
static inline i64 gram_pack(i64 d) {
    return (d + kMaxPanel) * panel_rows(gram_rows<E>(d)) + i64{64} / static_cast<i64>(sizeof(E));
}
static inline i64 dense_gram_scratch(i64 d) {
    const i64 full = gram_pack<double>(d), single = gram_pack<float>(d) / 2 + 1;
    return full > single ? full : single;
}
static inline i64 gram_scratch(const Rows& r) { return is_dense(r.store) ? dense_gram_scratch(r.d) : 0; }

// Return whether a pass over `entries` numbers, `row` of them in each row, is long enough for two threads (`halves` in
// core/rows.hpp).
static inline bool worth_halving(double entries, double row) { return entries * (row + 10.0) >= 1.5e6; }

// A helper thread that runs one half of a pass while the caller runs the other. Null `start`: no helper.
struct Helper {
    void* self = nullptr;
    void (*start)(void* self, void (*task)(void*), void* with) = nullptr;
    void (*wait)(void* self) = nullptr;  // wait until the task has ended; polls
    void (*drop)(void* self) = nullptr;  // cancel the task at its next poll
};

struct NewtonJob {
    double lam, tol;
    int max_steps;
    int intercept;
    int polish;
    Helper helper{};
};
// Result of a complete native fit: numbers of steps, of sweeps over the rows and of Gram matrices, status, last primal
// and dual value.
struct NewtonReport {
    int steps, sweeps, grams, status;
    double primal, dual = 0.0;
};

// A complete native fit of a loss with one kink (interior/fit.hpp); warm: start from the given theta.
struct InteriorJob {
    double lam, tol;
    int max_steps;
    int intercept;
    int warm;
};
// exact: the crossover of interior/crossover.hpp succeeded
struct InteriorReport {
    int status, steps, sweeps, grams, exact;
    double primal;
};
constexpr int kPlanes = 10;  // numbers per row that the interior point method stores
// These arrays of row state, `stride` doubles apart; element 0 of each belongs to row 0.
struct RowState {
    double* at;
    i64 stride;
};

// Part of an epoch of dual coordinate ascent: buckets of `bucket` entries of the list `rows` are visited in the given
// order (dual/coordinate_ascent.hpp). Without a list, the entries are all rows, and none is removed.
struct CdJob {
    double lam, stiffness;
    const i64* order;
    i64 bucket;
    i64* rows;
    i64 count;                      // number of entries
    double far;                     // rows at a bound whose slope exceeds this are removed from the list (shrinking)
    const double* along = nullptr;  // x_i . c for a centre c
    double centre = 0.0;            // |c|^2
    Helper helper{};                // for very long dense rows
};

// The optimal intercept, and the sum of the losses at it.
struct Settled {
    double b, loss;
};
// Doubles of scratch for the optimal intercept of n rows (and for balancing them), and for that of a list of rows.
static inline i64 intercept_scratch(i64 n) { return 4 * n + 32; }
static inline i64 among_scratch(i64 count) { return 4 * count + intercept_scratch(count); }

// A class label 0 .. k-1 for each row, and its sample weight (null means 1).
struct Classes {
    const i64* label;
    const double* weight;
    i64 k;
};
// Arrays with one column per class are padded to whole vectors; the padding columns are 0.
static inline i64 padded_classes(i64 k) { return (k + 7) / 8 * 8; }
// Products of wide dense rows use packed panels (softmax/panels.hpp): kPanelRows rows per chunk, a stride of
// kPanelHeight rows between panels, columns rounded up to whole panels, an odd number of them if more than two, and
// tiles of at most kPanelTile classes.
constexpr int kPanelRows = 144, kPanelHeight = 150, kPanelTile = 12;
static inline bool softmax_packed(bool dense, i64 d, i64 k) { return dense && d >= 64 && k >= 8; }
static inline i64 panel_columns(i64 columns) {
    const i64 panels = (columns + 15) / 16;
    return (panels > 2 ? panels | 1 : panels) * 16;
}
static inline i64 panel_scratch(i64 d, i64 k) {
    const i64 K = panel_columns(k), columns = panel_columns(d);
    return kPanelHeight * columns + 3 * (d + 1) * K + (K + kPanelTile) * columns + kPanelRows * K + 64;
}
static inline int softmax_rows(bool dense, i64 d, i64 k) {
    if (softmax_packed(dense, d, k)) return kPanelRows;
    const i64 fit = 8192 / padded_classes(k) / 8 * 8;
    return static_cast<int>(fit < 8 ? 8 : fit > 256 ? 256 : fit);
}
static inline i64 softmax_scratch(bool dense, i64 d, i64 k) {
    const i64 products = softmax_packed(dense, d, k) ? panel_scratch(d, k) : dense ? 4 * k * (d + 8) : 0;
    return 4 * padded_classes(k) * softmax_rows(dense, d, k) + products;
}
static inline i64 softmax_scratch(const Rows& r, i64 k) { return softmax_scratch(is_dense(r.store), r.d, k); }

// Parameters for the linear solve of a Newton step of the softmax loss (softmax/directions.hpp). `rough` and `fine` are
// squared residuals relative to the initial one: `rough` must be reached, `fine` always suffices. Between them, below
// the Newton decrement `near`, the contribution of the residual to the gap decides.
struct StepJob {
    double lam, value, tol, near, rough, fine;
    int to_the_end, intercept, most;  // most: maximum number of Hessian products
    const double *mu, *U, *scale;     // M^-1: (blocks, d + 1, d + 1) and (blocks, d + 1)
    i64 blocks;
    Helper helper{};
};

// Many models on the same rows, each near one of a few base points (grid/passes.hpp). Arrays with one column per base
// or model are padded to whole vectors; the padding columns are 0.
constexpr int kGridRows = 64;
constexpr int kGridSums = 10;    // sums per model, in vectors of up to eight lanes
constexpr int kBasePlanes = 30;  // arrays per base point: grid/taylor.hpp
struct GridJob {
    const i64* part;  // fold of each row, -1 for none
    i64 parts;        // number of folds
    i64 models, padded_bases, padded_models;
    const double* bases_at;  // (d + 1, padded_bases)
    const double* steps;     // (d + 1, padded_models)
    const i64* base_of;      // base point of each model
    const i64* part_of;      // fold held out from each model, -1 for none
    const double* reach;     // (models, 2): |w| and |b| of base and step together, for the rounding bound
    double* held;            // (n, slots), may be null: scores of the held-out rows, in the column slot_of[model]
    i64 slots;
    const i64* slot_of;
};

// Some steps of the perceptron (online/passes.hpp); counts [5] and numbers [2] hold its state between calls.
enum class Select { cyclic, first, listed, worst };
struct PerceptronJob {
    Select select;
    int normalised, intercept, online;
    i64 max_updates, budget;  // updates in total; rows to visit before this call returns
    const double* lengths;    // |(x, 1)|^2 or |x|^2 of each row
    const i64* order;         // order of the rows, if listed
    i64* counts;
    double* numbers;
    i64 room;       // number of updates to record
    i64* rows;      // the row of each recorded update,
    double* norms;  // and |(w, b)| after it
    double* sum;    // sum of updates, each times the rows visited before it [d + 1], or null
};

// Stochastic gradient steps first, first + 1, ... (online/passes.hpp). eta0 and decay have one entry per column; with
// Schedule::listed, eta0 has one per step.
enum class Schedule { constant, inverse, inverse_sqrt, listed };
struct SgdJob {
    Schedule schedule;
    const double *eta0, *decay;
    double lam, total;  // total: divisor of the weights of a batch
    i64 batch, first;
    int intercept;
};
static inline i64 sgd_scratch(i64 batch, i64 columns) { return batch + 3 * columns; }
static inline i64 losses_k_scratch(i64 K) { return 32 * K; }

// A complete native fit with an L1 penalty (l1/fit.hpp).
struct LassoJob {
    double l1, l2, tol;
    int intercept, max_steps;
};

// Prox-Newton on the listed columns of X (l1/column_fit.hpp), which are stored as the rows of the argument Rows.
// The features of a group are neighbours in the list: group g has the positions first[g] to first[g + 1].
struct ColumnJob {
    const i64* list;
    i64 count, groups;
    const i64* first;                // [groups + 1]
    const double *weights, *ridges;  // of |w_g| and |w_g|^2/2 for each group
    double tol;
    int intercept, max_steps;
};
struct ColumnReport {
    int status, steps, sweeps, solves, gradients;
    double primal, gap;
};

}  // namespace linsep
