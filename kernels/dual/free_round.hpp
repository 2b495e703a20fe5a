// A round on the free rows: those whose u is strictly inside its interval.
//
// With the other rows fixed, the augmented dual of dual/ascent.hpp is a quadratic in the signed masses p = s sign u of the free
// rows F, if the conjugate of the loss is a parabola there. Its Hessian is
//   A = X_F X_F'/lam + r 1 1' + diag(ridge/s),      ridge = (curvature of l*),
// (of the centred rows where there is a centre). An epoch settles what is local quickly and what is global slowly;
// conjugate gradients do the opposite. So a round is: some of their steps, the move projected onto the intervals, and a
// few epochs over F alone (made by dual/ascent.cpp), which cost no more than the rows of F. The projection bends the move, and
// the more rows it stops the worse the rest of the move fits: so its length is searched along the bent path, and the
// dual value never falls.
//
// A list of rows scattered over memory is read at nearly the price of all rows, and by one thread. So many free rows
// are copied, once for all products of a round, and read by two threads. Whether they are depends on the data alone.
//
// Moré and Toraldo 1991 (conjugate gradients between bounds); Hsieh et al. 2008 (why the set of free rows settles).
#pragma once
#include <vector>

#include "core/kernels.hpp"
#include "dual/large_work.hpp"

namespace linsep {

// What a round sees of an ascent, and moves: u, theta, state.
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
    static constexpr int kSteps = 15, kLong = 100;  // of conjugate gradients; where the set of free rows has settled
    static constexpr double kFine = 0.05;           // residual at which they end, as a share of the first one
    static constexpr int kEpochs = 3;               // over the free rows
    static constexpr double kCopied = 2.0;          // entries of free rows from which a copy pays, in units of `large`

    // Epochs that take as long as a round would, with this share of the rows free.
    static double price(double share) { return 2.0 + (kSteps + kEpochs) * share; }

    // Gathers the free rows; false if there are fewer than two. Once the set has settled, one long run of conjugate
    // gradients serves better than many short ones: up to the share `goal` of the residual.
    bool begin(const FreeView& view, double goal);
    // Steps of conjugate gradients until they are done (true) or `entries` is used up.
    bool solve(const FreeView& view, double* entries);
    // The move, bent onto the intervals, of the best length.
    void move(const FreeView& view);

    const std::vector<std::int64_t>& list() const { return list_; }
    // passes over all rows since this was asked before
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
    void add(const FreeView& view, const double* a);  // to v_
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
