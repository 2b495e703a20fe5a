// What the kernels offer, free of Python and of instruction sets. Each instruction set fills one Table.
#pragma once
#include <cstdint>

namespace linsep {

enum class Store { dense64, dense32, csr64i32, csr64i64, csr32i32, csr32i64 };

// n rows of d features. Dense: C order in `values`. CSR: `values`, `indices`, `starts` (all of one index type).
struct Rows {
    Store store;
    std::int64_t n, d;
    const void* values;
    const void* indices;
    const void* starts;
};

// Margin of row i: m_i = sign_i * z_i + offset_i, counted weight_i times. Null offset means 0, null weight 1.
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
// Parameters of a loss: the width of its bend, and the margin at which a loss of residuals (squared, huber, absolute) is
// 0. All others have that margin at 1, the perceptron at 0, whatever is given here.
struct Shape {
    double width = 1.0, centre = 1.0;
};
struct LossSpec {
    LossId id;
    Shape shape{};
};

// The margin at which the parabola, or the kink, of a loss begins: 0 of the perceptron, 1 of all that have no centre.
inline double kink_of(LossSpec spec) {
    switch (spec.id) {
        case LossId::squared:
        case LossId::huber:
        case LossId::absolute:
            return spec.shape.centre;
        default:
            return spec.id == LossId::perceptron ? 0.0 : 1.0;
    }
}

// The dense Gram packs so many rows at a time, in scratch of gram_scratch doubles, in tiles of so many columns. Packed
// rows lie an odd number of tiles apart, so that those of one column do not fall on the same lines of the cache.
template <class E>
constexpr int kGramColumns = 64 / sizeof(E);
constexpr int kMaxGramRows = 512;
template <class E>
std::int64_t gram_stride(std::int64_t d) {
    const std::int64_t tiles = d / kGramColumns<E> + 1;
    return (tiles > 2 ? tiles | 1 : tiles) * kGramColumns<E>;
}
template <class E>
int gram_rows(std::int64_t d) {
    const std::int64_t most = sizeof(E) == 4 ? 256 : kMaxGramRows, fit = 262144 / (gram_stride<E>(d) * sizeof(E));
    return static_cast<int>(sizeof(E) == 4 ? most : fit < 64 ? 64 : fit > most ? most : fit);
}
inline std::int64_t dense_gram_scratch(std::int64_t d) {
    const std::int64_t full = gram_stride<double>(d) * gram_rows<double>(d);
    const std::int64_t single = gram_stride<float>(d) * gram_rows<float>(d) / 2;
    return full > single ? full : single;
}
inline std::int64_t gram_scratch(const Rows& r) {
    return r.store == Store::dense64 || r.store == Store::dense32 ? dense_gram_scratch(r.d) : 0;
}

// Whether a pass over n rows with so many entries, `row` in each, is work enough for two threads (core/halves.hpp).
inline bool worth_halving(double entries, double row) { return entries * (row + 10.0) >= 1.5e6; }

// doubles of scratch that a whole native fit needs
inline std::int64_t newton_scratch(const Rows& r) {
    const std::int64_t o = r.d + 1, one = o * o + gram_scratch(r);
    const bool dense = r.store == Store::dense64 || r.store == Store::dense32;
    const double row = static_cast<double>(r.d);
    const bool two = !dense || worth_halving(static_cast<double>(r.n) * row, row);
    return 10 * (o + 8) + 3 * (r.n + 8) + 2 * o + o * o + (two ? 2 : 1) * one + 80;
}

// Somebody who makes one half of a pass while the caller makes the other. Without `start` there is nobody.
struct Helper {
    void* self = nullptr;
    void (*start)(void* self, void (*task)(void*), void* with) = nullptr;
    void (*wait)(void* self) = nullptr;
};

struct NewtonJob {
    double lam, tol;
    int max_steps;
    int intercept;
    int polish;
    Helper helper{};
};
// What a native whole fit reports back: steps made, sweeps over the rows, status, last primal and dual value.
struct NewtonReport {
    int steps, sweeps, grams, status;
    double primal, dual = 0.0;
};

// A whole native fit of a loss with one kink (interior/fit.hpp); warm: begin at theta as given.
struct InteriorJob {
    double lam, tol;
    int max_steps;
    int intercept;
    int warm;
};
// exact: the point is that of interior/crossover.hpp
struct InteriorReport {
    int status, steps, sweeps, grams, exact;
    double primal;
};
constexpr int kPlanes = 10;  // numbers per row that the interior point method keeps
inline std::int64_t crossover_scratch(const Rows& r) {
    const std::int64_t o = r.d + 1;
    return 2 * r.n + 6 * (o + 8) + 2 * o * o + gram_scratch(r) + 64;
}
inline std::int64_t interior_scratch(const Rows& r) {
    const std::int64_t o = r.d + 1, spare = crossover_scratch(r), newton = newton_scratch(r);
    return (kPlanes + 3) * r.n + 14 * (o + 8) + 2 * o * o + gram_scratch(r) + (spare > newton ? spare : newton) + 64;
}

// doubles of scratch for non-negative least squares of m rows of p numbers
inline std::int64_t nnls_scratch(std::int64_t m, std::int64_t p) {
    const std::int64_t cap = m < p ? m : p;
    return cap * (p + cap + 3) + 2 * m + (m + 7) / 8 + 8;
}

// One stretch of dual coordinate ascent: buckets of `bucket` entries of the list `rows` are visited in the given order
// (dual/coordinate_ascent.hpp). Without a list the entries are the rows themselves, and none may leave.
struct CdJob {
    double lam, stiffness;
    const std::int64_t* order;
    std::int64_t bucket;
    std::int64_t* rows;
    std::int64_t count;             // of entries
    double far;                     // slope beyond which a row that rests leaves the list
    const double* along = nullptr;  // x.c of each row, for a centre c
    double centre = 0.0;            // |c|^2
    Helper helper{};                // for very long dense rows
};

// The best intercept and the sum of the losses there.
struct Settled {
    double b, loss;
};

// A class 0 .. k-1 for each row, counted weight_i times (null weight means 1).
struct Classes {
    const std::int64_t* label;
    const double* weight;
    std::int64_t k;
};
// Arrays with a column per class are padded to whole vectors; the padding columns are 0.
inline std::int64_t padded_classes(std::int64_t k) { return (k + 7) / 8 * 8; }
inline int softmax_rows(std::int64_t k) {
    const std::int64_t fit = 8192 / padded_classes(k) / 8 * 8;
    return static_cast<int>(fit < 8 ? 8 : fit > 256 ? 256 : fit);
}
inline std::int64_t softmax_scratch(bool dense, std::int64_t d, std::int64_t k) {
    return 4 * padded_classes(k) * softmax_rows(k) + (dense ? 4 * k * (d + 8) : 0);
}
inline std::int64_t softmax_scratch(const Rows& r, std::int64_t k) {
    return softmax_scratch(r.store == Store::dense64 || r.store == Store::dense32, r.d, k);
}

// doubles of scratch that a whole native multinomial fit needs
inline std::int64_t softmax_newton_scratch(const Rows& r, std::int64_t k) {
    const std::int64_t o = r.d + 1, size = o * k;
    return 3 + 3 * o * padded_classes(k) + 4 * size + o + k * r.n + k * (k + 1) / 2 * o * o + 2 * size * size +
           softmax_scratch(r, k) + gram_rows<double>(r.d) + gram_scratch(r);
}

// How a Newton step of the softmax loss is to be solved: softmax/directions.hpp. `rough` and `fine` are squared residuals, as
// shares of the first; `near` is the decrement from which the residual itself counts.
struct StepJob {
    double lam, value, tol, near, rough, fine;
    int to_the_end, intercept, most;  // most products
    const double *mu, *U, *scale;     // M^-1: (blocks, d + 1, d + 1) and (blocks, d + 1)
    std::int64_t blocks;
    Helper helper{};
};
inline std::int64_t softmax_steps_scratch(const Rows& r, std::int64_t k) {
    return (4 * padded_classes(k) + 2) * (r.d + 1) + 2 * softmax_scratch(r, k);
}

// Many models on the same rows, each near one of a few base points: grid/passes.hpp. Arrays with a column per base or model
// are padded to whole vectors; the padding columns are 0.
constexpr int kGridRows = 64;
constexpr int kGridSums = 10;    // of each model, in vectors of up to eight lanes
constexpr int kBasePlanes = 30;  // of each base: grid/taylor.hpp
struct GridJob {
    const std::int64_t* part;  // of each row, -1 for none
    std::int64_t parts;        // that are held out from a model: 0 ... parts - 1
    std::int64_t models, padded_bases, padded_models;
    const double* bases_at;       // (d + 1, padded_bases)
    const double* steps;          // (d + 1, padded_models)
    const std::int64_t* base_of;  // of each model
    const std::int64_t* part_of;  // that is held out from each model, -1 for none
    const double* reach;          // (models, 2): |w| and |b| of base and step together, for the rounding allowance
    double* held;  // (n, slots), may be null: scores of the rows of its part, at the column of each model
    std::int64_t slots;
    const std::int64_t* slot_of;
};
inline std::int64_t grid_width(const GridJob& job) { return job.padded_bases + job.padded_models; }
inline std::int64_t grid_scratch(const GridJob& job, std::int64_t d) {
    return 8 + grid_width(job) * (3 * d + 1 + 2 * kGridRows) + kGridRows * kBasePlanes * job.padded_bases +
           8 * kGridSums * job.models;
}
inline std::int64_t grid_lists(const GridJob& job, std::int64_t rows) { return rows + job.models + 2 * job.parts + 3; }

// One stretch of the perceptron (online/passes.hpp): counts [5] and numbers [2] carry its state from call to call.
enum class Select { cyclic, first, listed, worst };
struct PerceptronJob {
    Select select;
    int normalised, intercept, online;
    std::int64_t max_updates, budget;  // updates in all; rows to visit before this call returns
    const double* lengths;             // |(x, 1)|^2 or |x|^2 of each row
    const std::int64_t* order;         // of the rows, if listed
    std::int64_t* counts;
    double* numbers;
    std::int64_t room;   // updates that are recorded
    std::int64_t* rows;  // which row,
    double* norms;       // and |(w, b)| after it
    double* sum;         // updates times rows visited before them [d + 1], or null
};

// Stochastic steps first, first + 1, ... (online/passes.hpp). eta0 and decay have an entry per column; listed: eta0 per step.
enum class Schedule { constant, inverse, inverse_sqrt, listed };
struct SgdJob {
    Schedule schedule;
    const double *eta0, *decay;
    double lam, total;  // total: what the weights of a batch are divided by
    std::int64_t batch, first;
    int intercept;
};
inline std::int64_t sgd_scratch(std::int64_t batch, std::int64_t columns) { return batch + 3 * columns; }
inline std::int64_t losses_k_scratch(std::int64_t K) { return 32 * K; }

// A whole native fit with an absolute penalty (l1/fit.hpp); room for lasso_scratch doubles and 2 d integers.
struct LassoJob {
    double l1, l2, tol;
    int intercept, max_steps;
};
inline std::int64_t quadratic_doubles(std::int64_t k) { return 3 * k * k + 8 * k; }
inline std::int64_t lasso_scratch(const Rows& r) {
    const std::int64_t o = r.d + 1;
    return quadratic_doubles(r.d) + 6 * (o + 8) + 3 * (r.n + 8) + o * o + gram_scratch(r) + 64;
}

// Prox-Newton on the listed columns of X (l1/column_fit.hpp), which are the rows of the argument Rows.
struct ColumnJob {
    const std::int64_t* list;
    std::int64_t count;
    double l1, l2, tol;
    int intercept, max_steps;
};
struct ColumnReport {
    int status, steps, sweeps, solves, gradients;
    double primal, gap;
};
inline std::int64_t column_scratch(std::int64_t n, std::int64_t count) { return 4 * (n + 8) + 10 * (count + 8); }

// All kernels work on rows [lo, hi), are single-threaded and ADD to their outputs.
struct Table {
    const char* name;
    // out: loss, then the gradient of sum s l(m) by (w, b) [d + 1]; curvature (per row, may be null) gets s l''(m)
    // (s max(l'', blend * secant curvature), see sums/sweep.hpp)
    void (*sweep)(Rows, std::int64_t lo, std::int64_t hi, Targets, LossSpec, const double* theta, double* out,
                  double* curvature, int want_gradient, double blend);
    // out layout: sums/closing.hpp
    void (*closing)(Rows, std::int64_t lo, std::int64_t hi, Targets, LossSpec, const double* base, const double* step,
                    const double* theta, const double* dual, double* out, double* room, double* found);
    // out: upper triangle (or, for CSR, any triangle) of sum h (x - mu, 1)(x - mu, 1)'   [(d+1) x (d+1)]
    void (*gram)(Rows, std::int64_t lo, std::int64_t hi, const double* h, const double* mu, double* out,
                 double* scratch);
    // the same of dense rows in single precision, to 1e-7 of the diagonal
    void (*gram_single)(Rows, std::int64_t lo, std::int64_t hi, const double* h, const double* mu, double* out,
                        double* scratch);
    // out += sum h (x,1) ((x,1) . v)
    void (*hess_vec)(Rows, std::int64_t lo, std::int64_t hi, const double* h, const double* v, double* out);
    // out += sum a (x,1): what a loss written in Python needs for its gradient
    void (*combine)(Rows, std::int64_t lo, std::int64_t hi, const double* a, double* out);
    // out[j] += sum h x_j^2, then out[d + j] += sum h x_j, out[2d] += sum h
    void (*moments)(Rows, std::int64_t lo, std::int64_t hi, const double* h, double* out);
    // z[i - lo] = x_i . w + b, and probabilities from such scores; 0, or NaN if a score is not finite: sums/predictions.hpp
    double (*scores)(Rows, std::int64_t lo, std::int64_t hi, const double* theta, double* z);
    double (*sigmoids)(Rows, std::int64_t lo, std::int64_t hi, const double* theta, double* p);
    double (*softmaxes)(Rows, std::int64_t lo, std::int64_t hi, const double* W, std::int64_t k, double* p,
                        double* scratch);
    // losses along a ray: out[2 t] += sum s l(m(theta + step_t delta)), out[2 t + 1] += its derivative by step_t
    void (*ray)(Rows, std::int64_t lo, std::int64_t hi, Targets, LossSpec, const double* theta, const double* delta,
                const double* steps, std::int64_t n_steps, double* out);
    // pointwise loss, for the tests: value, slope, curvature, conjugate at -u (u given in m)
    void (*pointwise)(LossSpec, std::int64_t n, const double* m, double* value, double* slope, double* curvature,
                      double* conjugate);
    // x = A^-1 b for a symmetric positive semidefinite A of order n, refined once; drop: leave dependent columns alone
    // returns the smallest pivot as a share of the diagonal
    // (newton/fit.hpp). Room for n * (n + 2) doubles. One thread, the same bits always: LAPACK wakes others for nothing.
    double (*spd_solve)(std::int64_t n, const double* A, const double* b, int drop, double* x, double* scratch);
    // min |A'x - f| over x >= 0 from the x given; r becomes f - A'x: core/nnls.hpp. status 0 optimal, 1 |r| <= tol |f|, 2 limit
    NewtonReport (*nnls)(std::int64_t m, std::int64_t p, const double* A, const double* f, double tol, int max_steps,
                         double* x, double* r, double* scratch);
    // the factor alone (U n x n, scale n; returns the smallest pivot), and x = A^-1 b by it, not refined
    double (*spd_factor)(std::int64_t n, const double* A, int drop, double* U, double* scale);
    void (*spd_apply)(std::int64_t n, const double* U, const double* scale, const double* b, double* x);
    // a whole fit: newton/fit.hpp
    NewtonReport (*newton)(Rows, Targets, LossSpec, NewtonJob, double* theta, double* base, double* step,
                           double* closing, double* scratch);
    // The row passes of the interior point method (interior/passes.hpp); state is kPlanes planes of `stride` numbers, h the
    // weights of its Gram. Row 0 of the state is row 0 of the rows.
    void (*kink_margins)(Rows, std::int64_t lo, std::int64_t hi, Targets, LossSpec, const double* theta, double* v,
                         double* out);
    void (*sort_rows)(Rows, std::int64_t lo, std::int64_t hi, Targets, LossSpec, const double* theta, double tau,
                      const double* mu, const double* scale, double* v, double* u, double* out);
    void (*ipm_central)(std::int64_t lo, std::int64_t hi, LossSpec, double mu, double* state, std::int64_t stride);
    void (*ipm_gather)(Rows, std::int64_t lo, std::int64_t hi, Targets, LossSpec, double step, double* state,
                       std::int64_t stride, double* h, double* out);
    double (*ipm_predict)(Rows, std::int64_t lo, std::int64_t hi, Targets, const double* dtheta, double* state,
                          std::int64_t stride, double* out);
    double (*ipm_correct)(Rows, std::int64_t lo, std::int64_t hi, Targets, const double* dtheta, double mu,
                          double* state, std::int64_t stride);
    void (*ipm_recentre)(Rows, std::int64_t lo, std::int64_t hi, Targets, double step, double mu, double* state,
                         std::int64_t stride, double* out);
    double (*ipm_attempt)(Rows, std::int64_t lo, std::int64_t hi, Targets, const double* dtheta, double step, double mu,
                          double* state, std::int64_t stride);
    void (*ipm_adopt)(std::int64_t lo, std::int64_t hi, Targets, double step, double mu, double* state,
                      std::int64_t stride);
    // theta, u, v (margins at theta, on entry and exit) of the exact solution, if 1 is returned: interior/crossover.hpp
    int (*crossover)(Rows, Targets, LossSpec, double lam, int intercept, const double* linear, int rounds,
                     double* theta, double* u, double* v, double* scratch);
    // a whole fit: interior/fit.hpp
    InteriorReport (*interior)(Rows, Targets, LossSpec, InteriorJob, double* theta, double* u, double* closing,
                               double* scratch);
    // u into its box and to sum s sign u = 0 (interior/crossover.hpp)
    void (*make_feasible)(std::int64_t n, Targets, LossSpec, int intercept, double* u);
    // 0, or NaN if a stored number is not finite
    double (*not_finite)(Rows);
    // norms[i] = |x_i|^2
    void (*row_norms)(Rows, std::int64_t lo, std::int64_t hi, double* norms);
    // z[i - lo] = |x_i| . |w| + |b|: what rounding errors of the score are measured by
    void (*reaches)(Rows, std::int64_t lo, std::int64_t hi, const double* theta, double* z);
    // Z (hi - lo, K) = (x, 1)'W for W (d + 1, K), K a multiple of 8
    void (*scores_k)(Rows, std::int64_t lo, std::int64_t hi, const double* W, std::int64_t K, double* Z);
    // The softmax loss: softmax/passes.hpp and softmax/closing.hpp state the layouts. Probabilities p_ic lie at p[c * stride + i].
    void (*softmax_sweep)(Rows, std::int64_t lo, std::int64_t hi, Classes, const double* W, double* out, double* p,
                          std::int64_t stride, double* scratch);
    void (*softmax_hess_vec)(Rows, std::int64_t lo, std::int64_t hi, Classes, const double* p, std::int64_t stride,
                             const double* V, double* out, double* scratch);
    void (*softmax_ray)(Rows, std::int64_t lo, std::int64_t hi, Classes, const double* W, const double* D,
                        const double* steps, std::int64_t n_steps, double* out, double* scratch);
    void (*softmax_cross)(std::int64_t lo, std::int64_t hi, Classes, const double* p, std::int64_t stride, double* out,
                          double* scratch);
    void (*softmax_hessian)(Rows, std::int64_t lo, std::int64_t hi, Classes, const double* p, std::int64_t stride,
                            const double* mu, double* out, double* scratch);
    void (*softmax_closing)(Rows, std::int64_t lo, std::int64_t hi, Classes, const double* base, const double* step,
                            const double* W, const double* bound, const double* dual, double* out, double* scratch);
    // rows that the softmax passes add up in registers before they add to their outputs
    int (*softmax_chunk)(Rows, std::int64_t k);
    // a whole fit: softmax/fit.hpp
    NewtonReport (*softmax_newton)(Rows, Classes, NewtonJob, double* W, double* base, double* step, double* closing,
                                   double* scratch);
    // conjugate gradients for one of its steps: softmax/directions.hpp
    int (*softmax_steps)(Rows, Classes, StepJob, const double* p, std::int64_t stride, const double* g, double* D,
                         double* R, double* first, bool* done, double* scratch);
    // The multiclass hinge: softmax/crammer_singer.hpp states the layouts.
    void (*crammer_singer_step)(std::int64_t lo, std::int64_t hi, Classes, const double* z, const double* dz, double t,
                                const double* p0, double sigma, double* p, double* out);
    void (*crammer_singer_gradient)(Rows, std::int64_t lo, std::int64_t hi, Classes, const double* p, double* out,
                                    double* scratch);
    void (*crammer_singer_ascend)(Rows, std::int64_t k0, std::int64_t k1, Classes, CdJob, const double* norms,
                                  double* p, double* W, double* state, double* scratch);
    void (*crammer_singer_closing)(Rows, std::int64_t lo, std::int64_t hi, Classes, const double* W,
                                   const double* bound, const double* dual, double* out, double* scratch);
    // visits the buckets order[k0 .. k1) and moves u, z, b, theta = (w, b0) and state: dual/coordinate_ascent.hpp
    void (*dual_cd)(Rows, std::int64_t k0, std::int64_t k1, Targets, LossSpec, CdJob, const double* norms, double* u,
                    double* z, double* b, double* theta, double* state);
    // out: sums of s l, s sign l', s l'' at the scores z + b
    void (*shifted)(std::int64_t lo, std::int64_t hi, Targets, LossSpec, const double* z, double b, double* out);
    // sums of each part of the rows, and of all models at once: grid/passes.hpp
    void (*part_sweep)(Rows, std::int64_t lo, std::int64_t hi, Targets, LossSpec, const std::int64_t* part,
                       std::int64_t parts, const double* theta, double* out, double* curvature, double* moments);
    void (*part_gram)(Rows, std::int64_t lo, std::int64_t hi, const std::int64_t* part, std::int64_t parts,
                      const double* h, const double* mu, bool single, double* out, double* scratch);
    void (*grid_closing)(Rows, std::int64_t lo, std::int64_t hi, Targets, LossSpec, GridJob, double* out,
                         double* scratch, std::int64_t* lists);
    // coordinate descent for a quadratic with an absolute penalty: l1/quadratic_cd.hpp
    std::int64_t (*quadratic_cd)(std::int64_t k, const double* S, double l1, double tol, std::int64_t max_sweeps,
                                 double* x, double* slope);
    // a whole fit with an absolute penalty: l1/fit.hpp
    NewtonReport (*lasso_newton)(Rows, Targets, LossSpec, LassoJob, double* theta, double* base, double* step,
                                 double* closing, double* scratch, std::int64_t* lists);
    // prox-Newton by columns: theta [count + 1], scores z [n], base and step of the dual point; room for column_scratch
    // doubles and 3 count integers
    ColumnReport (*column_newton)(Rows, Targets, LossSpec, ColumnJob, double* theta, double* z, double* base,
                                  double* step, double* scratch, std::int64_t* lists);
    // a seeded permutation, in place
    void (*shuffle)(std::int64_t count, std::uint64_t seed, std::int64_t* order);
    // rows by their numbers: out[k] = x.v, v += sum a_k x (dual/coordinate_ascent.hpp)
    void (*list_dots)(Rows, const std::int64_t* list, std::int64_t count, const double* v, double* out);
    void (*list_add)(Rows, const std::int64_t* list, std::int64_t count, const double* a, double* v);
    // weighted order statistic; permutes its arguments: dual/intercept.hpp
    double (*quantile)(std::int64_t n, double* x, double* weight, double target);
    // drops the rows that have left a list; how many remain
    std::int64_t (*remaining)(std::int64_t count, std::int64_t* rows);
    // the best intercept at the scores z, and u moved to sum s sign u = 0: dual/intercept.hpp. Room for 2 n numbers.
    Settled (*best_intercept)(std::int64_t n, Targets, LossSpec, int free, const double* z, double b, double reach,
                              double fine, double* room);
    void (*balance)(std::int64_t n, Targets, LossSpec, const double* z, const double* seen, double* u, double* room);
    // online/passes.hpp
    void (*perceptron)(Rows, const double* sign, PerceptronJob, double* theta);
    void (*sgd)(Rows, Classes, LossSpec, SgdJob, const std::int64_t* draws, std::int64_t count, double* W, double* sums,
                double* scratch);
    void (*losses_k)(Rows, std::int64_t lo, std::int64_t hi, Classes, LossSpec, const double* W, std::int64_t K,
                     const std::int64_t* of, double* out, double* scratch);
    // the order of an epoch: shuffled, and short rows of a length side by side: dual/coordinate_ascent.hpp
    void (*arrange)(Rows, std::int64_t count, const std::int64_t* list, std::uint64_t seed, std::int64_t* order,
                    std::int64_t* spare);
    // |x|^2 of each row and the sums of s x of either sign; products of each row with two vectors: dual/coordinate_ascent.hpp
    void (*class_sums)(Rows, std::int64_t lo, std::int64_t hi, Targets, double* norms, double* out);
    void (*two_scores)(Rows, std::int64_t lo, std::int64_t hi, const double* a, const double* b, const double* pairs,
                       double* za, double* zb);
    // the best intercept for the rows of a list, whose u may follow it while the others stay. Room for 8 count + 32.
    Settled (*best_among)(const std::int64_t* rows, std::int64_t count, Targets, LossSpec, int free, const double* z,
                          const double* u, double e, double b, double reach, double fine, double* room);
};

Table table_base();
#ifdef LINSEP_X86
Table table_avx2();
Table table_avx512();
#endif

}  // namespace linsep
