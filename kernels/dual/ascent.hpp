// Driver of dual coordinate ascent: from the first pass over the rows to a point that is worth a closing pass.
//
// Problem and dual, for lam > 0, with v = sum s sign u x:
//   min lam/2 |w|^2 + sum s l(m),   max -sum s (l*(-u) + u offset) - |v|^2/(2 lam)  subject to  e = sum s sign u = 0.
//
// Epochs over the rows (dual/coordinate_ascent.hpp) update u and w = v/lam. The constraint e = 0 of the intercept is
// handled by an augmented Lagrangian: margins use b = b0 + r e, and after each epoch the multiplier b0 becomes the
// optimal intercept for the score of each row at its last visit. This costs no pass and is a Newton step of the dual in
// b. Once u no longer changes these are the true scores, so the fixed point is the exact minimiser, not one with a
// penalised intercept.
//
// An epoch also sums the Fenchel-Young slacks of the rows at their visits. The sum approximates a recent duality gap
// and predicts when a closing pass is worthwhile. The closing pass and the certificate are computed elsewhere.
//
// Shrinking: rows at a bound of their interval, whose slope points farther outside than any row of the last epoch was
// from stationarity, are removed from the list that epochs visit, until the gap shows that some of them must be visited
// again. If many epochs remain, each is followed by a round on the free rows (dual/free_round.hpp).
//
// theta = (w', b0) refers to the original rows; scores and intercepts refer to the centred rows if there is a centre c:
// w = w' - (e/lam) c, b = b0 - c.w.
//
// Hsieh, Chang, Lin, Keerthi, Sundararajan 2008 (the method, and shrinking); Yu, Huang, Lin 2011 (logistic loss);
// Shalev-Shwartz, Zhang 2013 (rates); Hestenes 1969, Powell 1969 (augmented Lagrangian).
//
// Compiled once, not per instruction set: all expensive loops are called through the Table.
#pragma once
#include <vector>

#include "core/helper_thread.hpp"
#include "dual/compressed.hpp"
#include "dual/extrapolate.hpp"

namespace linsep {

struct AscentJob {
    Rows rows;
    Targets t;
    LossSpec loss;
    double lam, tol;
    bool intercept, two;  // two: a helper thread may be used; results are bit-identical
    std::uint64_t seed;
    double large;  // entries from which a helper thread is used
    double leave;  // slope from which a row is removed, as a multiple of the largest slope of a row that changed
};

// Properties of a loss that ascent uses: u lies in [low, high]; `bend` is the curvature of l*(-u) there
// (a bound for the logistic loss), `steep` the largest curvature of l, and `kink` minus the slope of l*(-u) at u = 0.
struct LossFacts {
    double low, high, bend, steep, kink;
    bool smooth, rests, classes;  // rests: l* is quadratic on an interval with bounds; classes: class sums give a start
};
LossFacts facts(LossSpec);

// Mean of s |x|^2 over sample rows from all parts of the data.
double sampled_mean(const Table&, const Rows&, const Targets&);
// An initial dual point with one u for each class (dual/dual_start.cpp).
struct ClassStart {
    double plus, minus, dual;
    bool near;
};

enum class Next { pause, close, slow, end, broken };

class Ascent {
  public:
    Ascent(const Table& table, const AscentJob& job, const double* theta);

    // Run until the caller has to act. `close`: run a closing pass at point(), and call report_gap() if the gap exceeds
    // the tolerance. `slow` (returned once): decide how to continue. `pause`: check limits, after about `entries`
    // entries or `limit` passes in total. `end`: the tolerance will not be reached. `broken`: a number has overflowed.
    Next advance(double entries, double limit);
    void report_gap(double gap);
    // finish an interrupted epoch early
    void halt();
    // theta with the optimal intercept, and u changed to satisfy e = 0
    void point(double* theta, double* u);
    // continue from these dual variables and this multiplier
    void restart(const double* u, double b);

    double predicted_gap() const;
    std::int64_t free() const;
    // return whether the slacks no longer decrease; all rows were last visited `lately` epochs ago
    static bool is_stalled(const double* slacks, std::int64_t count, std::int64_t lately);
    // sum of the future steps of the multiplier, extrapolated from three that shrink slowly and steadily; otherwise 0
    static double jump(double first, double second, double third);
    void epoch();    // run a complete epoch
    void improve();  // run a complete round on the free rows
    std::int64_t listed() const { return count_; }

    std::vector<double> u, z, b, theta, slacks, along, c;
    double state[4] = {};
    double budget;           // budget in passes: ascent ends if more are predicted
    std::int64_t most = -1;  // maximum number of epochs; if given, budget is ignored
    double passes = 0, primal, best = 0, stiffness = 0, hardness = 0;
    std::int64_t epochs = 0, asked = 0;
    bool started_near = false, there = false, overflown = false;
    const ClassStart* class_start() const { return has_start_ ? &start_ : nullptr; }

  private:
    enum class Phase { first, epoch, walk, after, round, solve, some, visit };
    struct Walking {  // an epoch that may be interrupted
        std::int64_t* order;
        std::int64_t size, bucket, at;
        std::int64_t* list;
        std::int64_t count;
        double far;
    };

    // dual/dual_start.cpp
    void begin(const double* theta);
    void count_sides();
    bool promising() const;
    void first_read(bool useful);
    bool guess(double b, double* w);
    void centre_scores(const double* w);
    void start_near(const double* theta);
    void start_from_classes(double b);
    void in_order();
    double alone(double b);
    bool far_off() const;
    double mean() const { return total_ > 0.0 ? size_ / total_ : 0.0; }

    void read(double share) {
        passes += share;
        spent_ += share;
    }
    void recount();
    void take(const std::vector<double>& sums, double b);
    double shift(const double* w) const;
    void primal_w(double* w) const;
    void combine(const double* u, std::vector<double>& sums);
    void all_back();
    void recall();
    void visit_only();  // visit only the first count_ entries of rows_
    bool has_centre() const { return !along.empty(); }
    double weight(std::int64_t i) const { return t_.weight ? t_.weight[i] : 1.0; }

    void set_out();
    bool walk(double* entries);
    void arrange_walk();
    void revisit();
    void finish_epoch();
    void settle_intercept(double b);
    void extrapolate(double step);
    void refresh();
    void settle(double b);
    Next to_close();
    FreeView view();
    bool begin_round();
    bool solve_round(double* entries);
    void visit_free();
    bool due();
    bool near_now();
    bool finite() const;
    double share() const;
    std::int64_t lately() const { return epochs - asked; }
    double epochs_to(double gap) const;
    double round_price() const;
    bool many_more() const;
    bool over_budget() const;
    bool strong() const;

    const Table& table_;
    const AscentJob job_;
    const Targets t_;
    const LossFacts loss_;
    const std::int64_t n_, d_;
    const double lam_;
    HelperThread helper_thread_;
    LargeWork parts_;
    const Compressed compressed_;
    const Rows& rows_of_;
    double entries_;  // number of stored entries

    Buffer<double> norms_, scratch_;
    std::vector<double> before_;
    std::vector<double> sums_, steps_;                 // class sums; the last three steps of the multiplier
    const double *plus_ = nullptr, *minus_ = nullptr;  // into sums_
    Buffer<std::int64_t> rows_, order_;
    std::vector<std::int64_t> own_;
    std::int64_t count_ = 0, bucket_ = 1, buckets_ = 0;
    std::uint64_t walks_ = 0;
    Walking walking_{};
    Phase phase_ = Phase::first;
    int visits_ = 0;
    bool slowly_ = false, stale_ = false, slow_ = false, last_ = false, near_ = false, has_start_ = false;
    double stay_ = 0.5, far_, recalled_, reach_, bias_ = 1.0, closed_at_ = 0;
    std::int64_t closed_epochs_ = 0;
    double total_ = 0, sides_[2] = {}, size_ = 0, c_size_ = 0;
    std::int64_t live_ = 0;
    ClassStart start_{};
    FreeRound round_;
    Extrapolation extrapolation_;
    bool went_on_ = false;
    double spent_ = 0;  // passes used by epochs and rounds
};

}  // namespace linsep
