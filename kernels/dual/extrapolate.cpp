#include "dual/extrapolate.hpp"

#include <algorithm>

namespace linsep {

double dot(const double* a, const double* b, std::int64_t size);  // dual/dual_start.cpp

namespace {

using i64 = std::int64_t;

constexpr double kLongest = 1.0, kBack = -0.5;  // bounds on the step, in units of p
constexpr i64 kFewOut = 10;                     // each blocked row must be read: at most one row in this many

}  // namespace

void Extrapolation::remember(const FreeView& view, const double* z, const double* b) {
    const std::size_t n = static_cast<std::size_t>(view.rows.n), d = static_cast<std::size_t>(view.rows.d);
    u_.assign(view.u, view.u + n);
    z_.assign(z, z + n);
    b_.assign(b, b + n);
    w_.assign(view.theta, view.theta + d);
    e_ = view.state[0];
    f_ = view.state[3];
}

// Compute p and the corresponding changes of w, e and f; return false if too many rows would leave their interval.
bool Extrapolation::aim(const FreeView& view) {
    const i64 n = view.rows.n, d = view.rows.d;
    p_.resize(static_cast<std::size_t>(n));
    dw_.resize(static_cast<std::size_t>(d));
    out_.clear();
    mass_.clear();
    de_ = view.state[0] - e_;
    df_ = view.state[3] - f_;
    for (i64 i = 0; i < n; ++i) {
        double& p = p_[static_cast<std::size_t>(i)];
        p = view.u[i] - u_[static_cast<std::size_t>(i)];
        const double next = view.u[i] + p;
        if (next >= view.low && next <= view.high) continue;
        const double mass = (view.t.weight ? view.t.weight[i] : 1.0) * view.t.sign[i] * p;
        out_.push_back(i);
        mass_.push_back(-mass / view.lam);
        de_ -= mass;
        if (view.along) df_ -= mass * view.along[i];
        p = 0.0;
    }
    const i64 count = static_cast<i64>(out_.size());
    if (kFewOut * count > n) return false;
    for (i64 j = 0; j < d; ++j) dw_[static_cast<std::size_t>(j)] = view.theta[j] - w_[static_cast<std::size_t>(j)];
    view.table.list_add(view.rows, out_.data(), count, mass_.data(), dw_.data());
    return true;
}

// Derivatives of F in dual/coordinate_ascent.hpp along p, at fixed b0.
Extrapolation::Slope Extrapolation::slope(const FreeView& view) const {
    const i64 n = view.rows.n, d = view.rows.d;
    const double e = view.state[0], f = view.state[3];
    double first = 0, second = 0;
    for (i64 i = 0; i < n; ++i) {
        const double p = p_[static_cast<std::size_t>(i)], s = (view.t.weight ? view.t.weight[i] : 1.0) * p;
        first += s * (view.bend * view.u[i] - view.kink + (view.t.offset ? view.t.offset[i] : 0.0));
        second += s * p;
    }
    second *= view.bend;
    first += view.lam * dot(view.theta, dw_.data(), d) + (view.theta[d] + view.stiffness * e) * de_;
    second += view.lam * dot(dw_.data(), dw_.data(), d) + view.stiffness * de_ * de_;
    if (view.along) {
        first += (e * de_ * view.centre - e * df_ - f * de_) / view.lam;
        second += de_ * (de_ * view.centre - 2.0 * df_) / view.lam;
    }
    return {first, second};
}

bool Extrapolation::go(const FreeView& view, double* z, double* b) {
    bool moved = false;
    if (!u_.empty() && aim(view)) {
        const Slope at = slope(view);
        const double t = at.second > 0.0 ? std::min(kLongest, std::max(kBack, -at.first / at.second)) : 0.0;
        const i64 n = view.rows.n, d = view.rows.d;
        for (i64 i = 0; i < n; ++i) {
            const std::size_t k = static_cast<std::size_t>(i);
            view.u[i] += t * p_[k];
            z[i] += t * (z[i] - z_[k]);
            b[i] += t * (b[i] - b_[k]);
        }
        for (i64 j = 0; j < d; ++j) view.theta[j] += t * dw_[static_cast<std::size_t>(j)];
        view.state[0] += t * de_;
        view.state[3] += t * df_;
        moved = t != 0.0;
    }
    remember(view, z, b);
    return moved;
}

}  // namespace linsep
