#include "dual/free_round.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace linsep {
namespace {

using i64 = std::int64_t;

constexpr double kFewer = 0.5;    // the next shorter trial step is stopped by this fraction of the rows
constexpr double kFitting = 0.9;  // step along the chord from which the projection does no harm

double dot(const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t k = 0; k < a.size(); ++k) sum += a[k] * b[k];
    return sum;
}
double weighted_square(const std::vector<double>& a, const std::vector<double>& w) {
    double sum = 0;
    for (std::size_t k = 0; k < a.size(); ++k) sum += a[k] * a[k] * w[k];
    return sum;
}

}  // namespace

void FreeRound::copy(const Rows& from) {
    const bool dense = is_dense(from.store);
    const std::size_t width = from.store == Store::dense32 || from.store == Store::csr32 ? 4 : 8, rows = list_.size();
    const auto entries = [&](i64 i) { return dense ? from.d : from.starts[i + 1] - from.starts[i]; };
    starts_.assign(rows + 1, 0);
    for (std::size_t k = 0; k < rows; ++k) starts_[k + 1] = starts_[k] + entries(list_[k]);
    values_.resize(static_cast<std::size_t>(starts_[rows]) * width);
    if (!dense) indices_.resize(static_cast<std::size_t>(starts_[rows]));
    for (std::size_t k = 0; k < rows; ++k) {
        const auto p = static_cast<std::size_t>(dense ? list_[k] * from.d : from.starts[list_[k]]);
        const auto q = static_cast<std::size_t>(starts_[k]), count = static_cast<std::size_t>(entries(list_[k]));
        std::memcpy(values_.data() + q * width, static_cast<const char*>(from.values) + p * width, count * width);
        if (!dense) std::memcpy(indices_.data() + q, from.indices + p, count * sizeof(std::int32_t));
    }
    rows_ = {from.store,
             static_cast<i64>(rows),
             from.d,
             values_.data(),
             dense ? nullptr : indices_.data(),
             dense ? nullptr : starts_.data()};
    own_.resize(rows);
    for (std::size_t k = 0; k < rows; ++k) own_[k] = static_cast<i64>(k);
}

void FreeRound::dots(const FreeView& view, const double* v, double* out) {
    passes_ += 0.5 * share_;
    const i64* list = copied_ ? own_.data() : list_.data();
    view.parts.each(static_cast<i64>(list_.size()), copied_ ? entries_ : 0.0,
                    [&](i64 lo, i64 hi, int) { view.table.list_dots(rows_, list + lo, hi - lo, v, out + lo); });
}

void FreeRound::add(const FreeView& view, const double* a) {
    passes_ += 0.5 * share_;
    const i64* list = copied_ ? own_.data() : list_.data();
    view.parts.sum(static_cast<i64>(list_.size()), copied_ ? entries_ : 0.0, view.rows.d, v_, other_,
                   [&](i64 lo, i64 hi, double* out) { view.table.list_add(rows_, list + lo, hi - lo, a + lo, out); });
}

double FreeRound::centre_product(const FreeView& view, const std::vector<double>& a) const {
    return view.along ? dot(along_, a) : 0.0;
}

bool FreeRound::begin(const FreeView& view, double goal) {
    last_.swap(list_);
    list_.clear();
    for (i64 i = 0; i < view.rows.n; ++i)
        if (view.u[i] > view.low && view.u[i] < view.high && !(view.t.weight && view.t.weight[i] <= 0.0))
            list_.push_back(i);
    const std::size_t count = list_.size();
    if (count < 2) {
        list_.clear();
        return false;
    }
    const bool settled = list_ == last_;
    share_ = static_cast<double>(count) / static_cast<double>(view.rows.n);
    entries_ = share_ * view.entries;
    if (!settled) {
        copied_ = entries_ >= kCopied * view.parts.large;
        rows_ = view.rows;
        if (copied_) copy(view.rows);
    }
    for (auto* v : {&u_, &sign_, &weight_, &ridge_, &inverse_, &along_, &gradient_, &x_, &y_, &product_})
        v->resize(count);
    const double e = view.state[0], f = view.state[3], same = view.theta[view.rows.d] + view.stiffness * e;
    dots(view, view.theta, product_.data());
    for (std::size_t k = 0; k < count; ++k) {
        const i64 i = list_[k];
        u_[k] = view.u[i];
        sign_[k] = view.t.sign[i];
        weight_[k] = view.t.weight ? view.t.weight[i] : 1.0;
        ridge_[k] = view.bend / weight_[k];
        inverse_[k] = 1.0 / (view.norms[i] / view.lam + view.stiffness + ridge_[k] + 1e-300);
        along_[k] = view.along ? view.along[i] : 0.0;
        double score = product_[k] + same;
        if (view.along) score -= (e * (along_[k] - view.centre) + f) / view.lam;
        const double offset = view.t.offset ? view.t.offset[i] : 0.0;
        gradient_[k] = score - sign_[k] * (view.kink - offset - view.bend * u_[k]);
    }
    x_.assign(count, 0.0);
    r_ = gradient_;
    for (double& r : r_) r = -r;
    for (std::size_t k = 0; k < count; ++k) y_[k] = r_[k] * inverse_[k];
    size_ = weighted_square(r_, inverse_);
    const double fine = settled ? std::min(kFine, goal) : kFine;
    enough_ = fine * fine * size_;
    left_ = settled ? kLong : kSteps;
    return true;
}

bool FreeRound::solve(const FreeView& view, double* entries) {
    const std::size_t count = list_.size();
    while (left_ > 0 && size_ > enough_) {
        if (!(*entries > 0.0)) return false;
        *entries -= 2.0 * entries_;
        --left_;
        add(view, y_.data());
        dots(view, v_.data(), product_.data());
        double sum = 0, curved = 0;
        for (double y : y_) sum += y;
        const double same = view.stiffness * sum + (view.centre * sum - centre_product(view, y_)) / view.lam;
        for (std::size_t k = 0; k < count; ++k) {
            product_[k] = (product_[k] - along_[k] * sum) / view.lam + same + ridge_[k] * y_[k];
            curved += y_[k] * product_[k];
        }
        if (!(curved > 0.0)) break;  // zero curvature up to rounding
        const double length = size_ / curved;
        for (std::size_t k = 0; k < count; ++k) {
            x_[k] += length * y_[k];
            r_[k] -= length * product_[k];
        }
        const double now = weighted_square(r_, inverse_), ratio = now / size_;
        for (std::size_t k = 0; k < count; ++k) y_[k] = r_[k] * inverse_[k] + ratio * y_[k];
        size_ = now;
    }
    for (std::size_t k = 0; k < count; ++k) x_[k] *= sign_[k] / weight_[k];  // from p to u
    left_ = 0;
    return true;
}

// Project u + scale x onto the intervals; find the best step along the chord to that point, and its gain.
FreeRound::Trial FreeRound::attempt(const FreeView& view, double scale, std::vector<double>& ends) {
    const std::size_t count = list_.size();
    ends.resize(count);
    mass_.resize(count);
    double total = 0, slope = 0, curved = 0;
    for (std::size_t k = 0; k < count; ++k) {
        ends[k] = std::min(view.high, std::max(view.low, u_[k] + scale * x_[k]));
        mass_[k] = sign_[k] * weight_[k] * (ends[k] - u_[k]);
        total += mass_[k];
        slope += gradient_[k] * mass_[k];
        curved += ridge_[k] * mass_[k] * mass_[k];
    }
    add(view, mass_.data());
    const double common = centre_product(view, mass_);
    curved += (dot(v_, v_) + total * (view.centre * total - 2.0 * common)) / view.lam;
    curved += view.stiffness * total * total;
    const double length = curved > 0.0 ? std::min(1.0, std::max(0.0, -slope / curved)) : 0.0;  // never negative
    return {length, -length * (slope + 0.5 * length * curved), total, common};
}

// Take the best of several trial steps, each shorter and stopped by fewer rows than the one before.
void FreeRound::move(const FreeView& view) {
    hits_.clear();
    for (std::size_t k = 0; k < list_.size(); ++k) {
        const double room = (x_[k] > 0.0 ? view.high : view.low) - u_[k];
        if (x_[k] != 0.0 && std::fabs(x_[k]) >= std::fabs(room)) hits_.push_back(room / x_[k]);
    }
    std::sort(hits_.begin(), hits_.end());
    Trial best = attempt(view, 1.0, best_ends_);
    best_v_.swap(v_);
    for (std::size_t count = hits_.size(); count > 0 && best.length < kFitting;) {
        count = static_cast<std::size_t>(kFewer * static_cast<double>(count));
        const Trial shorter = attempt(view, hits_[count], ends_);
        if (shorter.gain <= best.gain && best.gain > 0.0) break;
        if (!(shorter.gain > best.gain)) continue;
        best = shorter;
        best_ends_.swap(ends_);
        best_v_.swap(v_);
    }
    if (!(best.gain > 0.0) || !std::isfinite(best.gain)) return;
    for (std::size_t k = 0; k < list_.size(); ++k) {
        const double moved = u_[k] + best.length * (best_ends_[k] - u_[k]);
        view.u[list_[k]] = std::min(view.high, std::max(view.low, moved));
    }
    for (i64 j = 0; j < view.rows.d; ++j)
        view.theta[j] += best.length / view.lam * best_v_[static_cast<std::size_t>(j)];
    view.state[0] += best.length * best.total;
    view.state[3] += best.length * best.shared;
}

}  // namespace linsep
