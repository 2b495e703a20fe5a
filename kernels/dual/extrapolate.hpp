// On along the way of the last epoch, to the highest point of the dual there.
//
// Where the penalty is strong, epochs of dual ascent err by nearly the same multiple of their last move. The dual is a
// parabola along p = u - (u an epoch ago), and all of its three coefficients are sums over u and w that no row need be
// read for: w moves by w - (w an epoch ago). So the best length of that move, forwards or back, costs little beside an
// epoch, and saves one where three or four would be made. Rows that would leave their interval stay.
#pragma once
#include "dual/free_round.hpp"

namespace linsep {

class Extrapolation {
  public:
    // Moves u, theta and state, and with them the scores z and intercepts b that the rows have seen; the first call
    // only remembers where they are. Whether anything has moved.
    bool go(const FreeView& view, double* z, double* b);

  private:
    struct Slope {
        double first, second;  // derivatives of the dual along the move, negated
    };
    bool aim(const FreeView& view);
    Slope slope(const FreeView& view) const;
    void remember(const FreeView& view, const double* z, const double* b);

    Room<double> u_, z_, b_, w_, p_, dw_;
    std::vector<std::int64_t> out_;
    std::vector<double> mass_;
    double e_ = 0, f_ = 0, de_ = 0, df_ = 0;
};

}  // namespace linsep
