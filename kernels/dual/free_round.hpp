// Conjugate gradient steps on the free rows: those whose u lies strictly inside its interval.
//
// With the other rows fixed, the augmented dual of dual/ascent.hpp is quadratic in the signed masses p = s sign u of
// the free rows F, if the conjugate of the loss is quadratic there. Its Hessian is
//   A = X_F X_F'/lam + r 1 1' + diag(ridge/s),      ridge = (curvature of l*),
// (with centred rows if there is a centre). Epochs reduce local errors quickly and global errors slowly; conjugate
// gradients do the opposite. A round therefore consists of some conjugate gradient steps, the projection of their sum
// onto the intervals, and a few epochs over F alone (run by dual/ascent.cpp), which read only the rows of F. The more
// rows the projection stops, the worse the rest of the step fits; the step size is therefore searched along the
// projected path, and the dual value never decreases.
//
// Reading scattered rows takes nearly as long as reading all rows, and uses one thread. If there are many free rows,
// they are copied once for all products of a round and read by two threads. This choice depends on the data alone.
//
// Moré and Toraldo 1991 (bound-constrained conjugate gradients); Hsieh et al. 2008 (why the set of free rows settles).
#pragma once
#include <vector>

#include "core/kernels.hpp"
#include "dual/large_work.hpp"

namespace linsep {

// The part of an Ascent that a round reads; it updates u, theta and state.
struct FreeView {
    const Table& table;
    const Rows& rows;
    const Targets& t;
    const LargeWork& parts;
    double low, high, bend, kink;  // of the loss
    double lam, stiffness, centre, entries;
    const double *norms, *along;  // along: null without a centre
    double *u, *theta, *state;
};

class FreeRound {
  public:
    static constexpr int kSteps = 15, kLong = 100;  // conjugate gradient steps; kLong once the free rows have settled
    static constexpr double kFine = 0.05;           // final residual relative to the initial one
    static constexpr int kEpochs = 3;               // epochs over the free rows
    static constexpr double kCopied = 2.0;          // copy free rows from this many entries on, in units of `large`

    // Cost of an epoch with a round, if this fraction of the rows is free [epochs].
    static double price(double share) { return 2.0 + (kSteps + kEpochs) * share; }

    // Collect the free rows; return false if there are fewer than two. Once the set has settled, one long run of
    // conjugate gradients is better than many short ones: it ends when the residual has fallen by the factor `goal`.
    bool begin(const FreeView& view, double goal);
    // Run conjugate gradient steps; return true when done, false when `entries` is used up.
    bool solve(const FreeView& view, double* entries);
    // Take the best step along the projected path.
    void move(const FreeView& view);

    const std::vector<std::int64_t>& list() const { return list_; }
    // passes over all rows since the last call
    double spent() {
        const double passes = passes_;
        passes_ = 0.0;
        return passes;
    }

  private:
    struct Trial {
        double length, gain, total, shared;
    };
    void copy(const Rows& rows);
    void dots(const FreeView& view, const double* v, double* out);
    void add(const FreeView& view, const double* a);  // v_ = sum of a_k x over the free rows
    double centre_product(const FreeView& view, const std::vector<double>& a) const;
    Trial attempt(const FreeView& view, double scale, std::vector<double>& ends);

    std::vector<std::int64_t> list_, last_, own_;
    std::vector<double> u_, sign_, weight_, ridge_, inverse_, along_, gradient_;
    std::vector<double> x_, r_, y_, product_, v_, other_, mass_, ends_, best_ends_, best_v_, hits_;
    std::vector<char> values_;
    std::vector<std::int32_t> indices_;
    std::vector<std::int64_t> starts_;
    Rows rows_{};
    double passes_ = 0, share_ = 0, entries_ = 0, size_ = 0, enough_ = 0;
    int left_ = 0;
    bool copied_ = false;
};

}  // namespace linsep
