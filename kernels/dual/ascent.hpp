// Dual coordinate ascent as a whole: from the first read of the rows to a point whose gap is worth a closing pass.
//
// Problem and dual, for lam > 0, with v = sum s sign u x:
//   min lam/2 |w|^2 + sum s l(m),   max -sum s (l*(-u) + u offset) - |v|^2/(2 lam)  subject to  e = sum s sign u = 0.
//
// Epochs over the rows (dual/coordinate_ascent.hpp) move u and w = v/lam. The intercept's constraint e = 0 is left to an augmented
// Lagrangian: margins use b = b0 + r e, and after each epoch the multiplier b0 becomes the best intercept for the scores as
// each row last saw them. That costs no pass, it is a Newton step of the dual in b, and where u has come to rest these
// are the true scores: the fixed point is the exact minimiser, not one with a penalised bias.
//
// An epoch also adds up the Fenchel-Young slacks that the rows had when their turn came. Their sum is the duality gap of
// the recent past, so it predicts when a closing pass is worth its price. That pass, and the proof, are not made here.
//
// Rows that rest at an end of their interval, with a slope that points farther beyond it than any row of the last epoch
// was from stationarity, leave the list that epochs visit, until the gap says that some of them must be asked again.
// Where epochs alone would still be many, each is followed by a round on the free rows (dual/free_round.hpp).
//
// theta = (w', b0) belongs to the rows as they are, scores and intercepts to the centred ones if there is a centre c:
// w = w' - (e/lam) c, b = b0 - c.w.
//
// Hsieh, Chang, Lin, Keerthi, Sundararajan 2008 (the method, and how rows leave); Yu, Huang, Lin 2011 (logistic loss);
// Shalev-Shwartz, Zhang 2013 (rates); Hestenes 1969, Powell 1969 (augmented Lagrangian).
//
// Compiled once, not per instruction set: all that is dear goes through the Table.
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
    bool intercept, two;  // two: a second thread may help; the bits are the same
    std::uint64_t seed;
    double large;  // stored numbers from which a second thread is worth its price
    double leave;  // slope of a row that leaves, as a multiple of the largest one of a row that moved
};

// What a loss is to ascent: u lies between low and high; bend is the curvature of l* there, and steep that of l; kink is
// minus its slope at u = 0.
struct LossFacts {
    double low, high, bend, steep, kink;
    bool smooth, rests, classes;  // rests: l* is a parabola on an interval; classes: the start from class sums applies
};
LossFacts facts(LossSpec);

// Mean of s |x|^2 over some rows from everywhere.
double sampled_mean(const Table&, const Rows&, const Targets&);
// Primal and dual value from the sums of a closing pass (sums/closing.hpp), without the rounding allowance. The dual point is made
// feasible for a free intercept by shrinking the heavier side.
struct ClosedValues {
    double primal, dual;
};
ClosedValues closed_values(const double* sums, const double* theta, std::int64_t d, double lam, bool intercept);

// A first dual point with one u for each class (dual/dual_start.cpp).
struct ClassStart {
    double plus, minus, dual;
    bool near;
};

enum class Next { pause, close, slow, end, broken };

class Ascent {
  public:
    Ascent(const Table& table, const AscentJob& job, const double* theta);

    // Goes on until somebody else is to act: `close` the gap at point(), and say by report_gap() if it is wider than asked
    // for; decide what to do where progress is `slow` (asked once); look at limits (`pause`) after about so many entries,
    // or when the passes reach a limit. `end`: no hope; `broken`: a number has overflowed.
    Next advance(double entries, double limit);
    void report_gap(double gap);
    // ends an epoch that was cut short
    void halt();
    // theta with the best intercept known, and u moved to e = 0
    void point(double* theta, double* u);
    // goes on from these dual variables and this multiplier
    void restart(const double* u, double b);

    double predicted_gap() const;
    std::int64_t free() const;
    // whether slacks have stopped to shrink, if all rows were asked so many epochs ago
    static bool is_stalled(const double* slacks, std::int64_t count, std::int64_t lately);
    // how far beyond three steps of the multiplier the next ones would lead, where they shrink slowly and steadily; or 0
    static double jump(double first, double second, double third);
    void epoch();    // a whole one
    void improve();  // a whole round on the free rows
    std::int64_t listed() const { return count_; }

    std::vector<double> u, z, b, theta, slacks, along, c;
    double state[4] = {};
    double patience;         // passes that are worth it: where more are predicted ascent ends
    std::int64_t most = -1;  // epochs at most; with such a limit patience does not count
    double passes = 0, primal, best = 0, stiffness = 0, hardness = 0;
    std::int64_t epochs = 0, asked = 0;
    bool started_near = false, there = false, overflown = false;
    const ClassStart* class_start() const { return has_start_ ? &start_ : nullptr; }

  private:
    enum class Phase { first, epoch, walk, after, round, solve, some, visit };
    struct Walking {  // a walk that may be cut
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
    void visit_only();  // the rows that are in rows_ now, count_ of them
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
    bool hopeless() const;
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
    double entries_;  // stored numbers

    Room<double> norms_, room_;
    std::vector<double> before_;
    std::vector<double> sums_, steps_;                 // of the classes; of the multiplier, the last three
    const double *plus_ = nullptr, *minus_ = nullptr;  // in sums_
    Room<std::int64_t> rows_, order_;
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
    double spent_ = 0;  // passes of epochs and rounds
};

}  // namespace linsep
