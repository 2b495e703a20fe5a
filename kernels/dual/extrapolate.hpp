// Exact line search along the change of the last epoch, p = u - (u one epoch ago).
//
// With a strong penalty, the error after an epoch of dual ascent is nearly a constant multiple of its change. The dual
// is quadratic along p, and its three coefficients are sums over u and w that need no pass over the rows, because w
// changes by w - (w one epoch ago). The best step, forwards or backwards, costs little compared with an epoch, and
// saves one of three or four. Dual variables that would leave their interval are not changed.
#pragma once
#include "dual/free_round.hpp"

namespace linsep {

class Extrapolation {
  public:
    // Update u, theta and state, and the scores z and intercepts b recorded for the rows; the first call only stores
    // them. Return whether anything has changed.
    bool go(const FreeView& view, double* z, double* b);

  private:
    struct Slope {
        double first, second;  // negated derivatives of the dual along p
    };
    bool aim(const FreeView& view);
    Slope slope(const FreeView& view) const;
    void remember(const FreeView& view, const double* z, const double* b);

    Buffer<double> u_, z_, b_, w_, p_, dw_;
    std::vector<std::int64_t> out_;
    std::vector<double> mass_;
    double e_ = 0, f_ = 0, de_ = 0, df_ = 0;
};

}  // namespace linsep
