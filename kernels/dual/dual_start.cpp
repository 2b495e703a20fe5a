// Initialisation of dual ascent: norms of the rows, their centre, and an initial dual point from class sums.
//
// One pass computes |x|^2 of every row and the sums S+ and S- of s x over the rows of each sign. They give
//   * the mean c of the rows. If it is far from 0, a change of w shifts all scores and the intercept follows slowly;
//     the rows are then centred (dual/coordinate_ascent.hpp), which needs x.c of every row, another pass over X;
//   * the dual point at w = 0 and the optimal intercept. It has one u for each class, so its best multiple t is the
//     maximum of a function of one variable and costs no pass: w = t v/lam with v = u+ S+ - u- S-. If t is near 1, the
//     penalty is strong, and this point is better than the result of an epoch from zero.
#include <algorithm>
#include <cmath>
#include <limits>

#include "dual/ascent.hpp"

namespace linsep {
namespace {

using i64 = std::int64_t;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kFarOff = 0.2;     // |c|^2 relative to the mean of |x|^2 from which rows are always centred
constexpr i64 kNarrow = 16'384;     // features up to which the class sums fit in the cache
constexpr double kEasy = 0.5;       // hardness up to which they are also computed for more features
constexpr double kNear = 0.5;       // multiple t of the dual point at w = 0 from which it is a good start
constexpr double kEven = 0.5;       // size of the smaller class relative to the larger from which the hinge uses it
constexpr double kStiffness = 0.1;  // of the intercept, in units of mean |x|^2/lam; 0.03 is as good, 0.3 is slower
constexpr double kSafety = 0.9;     // fraction of tol to reach: the certificate adds its rounding bound

struct Best {
    double t, value;
};

// Maximise t sum T u - t^2/2 (ridge sum T u^2 + square) over t <= 1: the maximiser and the maximum.
Best best_parabola(const double* T, const double* u, double square, double ridge) {
    const double linear = T[0] * u[0] + T[1] * u[1];
    const double curved = ridge * (T[0] * u[0] * u[0] + T[1] * u[1] * u[1]) + square;
    const double t = std::min(1.0, linear / curved);
    return {t, t * linear - 0.5 * t * t * curved};
}

// Maximise sum T h(t u) - t^2 square/2 over t <= 1, where h is the entropy, by Newton's method.
Best best_logistic(const double* T, const double* u, double square) {
    double low = 0.0, high = 1.0, t = 1.0;
    for (int i = 0; i < 60; ++i) {
        double slope = -t * square, bend = square;
        for (int k = 0; k < 2; ++k) {
            const double p = t * u[k];
            slope += T[k] * u[k] * std::log((1.0 - p) / p);
            bend += T[k] * u[k] * u[k] / (p * (1.0 - p));
        }
        (slope > 0.0 ? low : high) = t;
        const double step = slope / bend;
        t = low < t + step && t + step < high ? t + step : 0.5 * (low + high);
        if (std::fabs(step) <= 1e-3 * t) break;
    }
    double value = -0.5 * t * t * square;
    for (int k = 0; k < 2; ++k) {
        const double p = t * u[k];
        value -= T[k] * (p * std::log(p) + (1.0 - p) * std::log(1.0 - p));
    }
    return {t, value};
}

}  // namespace

double dot(const double* a, const double* b, i64 size) {
    double sum[4] = {};
    i64 j = 0;
    for (; j + 4 <= size; j += 4)
        for (int k = 0; k < 4; ++k) sum[k] += a[j + k] * b[j + k];
    for (; j < size; ++j) sum[0] += a[j] * b[j];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

LossFacts facts(LossSpec spec) {
    const double kink = kink_of(spec);
    switch (spec.id) {
        case LossId::logistic:
            return {0.0, 1.0, 4.0, 0.25, kink, true, false, true};
        case LossId::squared:
            return {-kInf, kInf, 0.5, 2.0, kink, true, false, true};
        case LossId::squared_hinge:
            return {0.0, kInf, 0.5, 2.0, kink, true, true, true};
        case LossId::huberised_hinge:
            return {0.0, 1.0, spec.shape.width, 1.0 / spec.shape.width, kink, true, true, true};
        case LossId::huber:
            return {-spec.shape.width, spec.shape.width, 1.0, 1.0, kink, true, true, false};
        case LossId::absolute:
            return {-1.0, 1.0, 0.0, 1.0, kink, false, true, false};
        default:  // the hinge; `steep` is that of the huberised hinge of width 1
            return {0.0, 1.0, 0.0, 1.0, kink, false, true, true};
    }
}

void Ascent::count_sides() {
    for (i64 i = 0; i < n_; ++i) {
        const double s = weight(i);
        live_ += s != 0.0;
        sides_[t_.sign[i] > 0.0 ? 0 : 1] += s;
    }
    total_ = sides_[0] + sides_[1];
}

double sampled_mean(const Table& table, const Rows& rows, const Targets& t) {
    Buffer<double> norms(static_cast<std::size_t>(rows.n));
    const bool some = rows.n >= 1024;
    double sum = 0;
    i64 seen = 0;
    for (i64 k = 0; k < (some ? 16 : 1); ++k) {
        const i64 lo = k * (rows.n / 16), hi = some ? std::min(rows.n, lo + 64) : rows.n;
        table.row_norms(rows, lo, hi, norms.data());
        for (i64 i = lo; i < hi; ++i) sum += (t.weight ? t.weight[i] : 1.0) * norms[static_cast<std::size_t>(i)];
        seen += hi - lo;
    }
    return sum / static_cast<double>(std::max<i64>(1, seen));
}

// Return whether the start from class sums is likely to be good.
bool Ascent::promising() const {
    const bool even = std::min(sides_[0], sides_[1]) >= kEven * std::max(sides_[0], sides_[1]);
    if (!loss_.smooth && !even) return false;
    return 4.0 * loss_.steep * sampled_mean(table_, rows_of_, t_) / lam_ <= kEasy;
}

// Compute the row norms and, if `useful`, the class sums. With very many features, class sums cost more than they save
// unless the start from them is good.
void Ascent::first_read(bool useful) {
    passes += 1.0;
    const i64 d = d_;
    if (useful) {
        std::vector<double> other;
        parts_.sum(n_, entries_, 2 * d, sums_, other,
                   [&](i64 lo, i64 hi, double* out) { table_.class_sums(rows_of_, lo, hi, t_, norms_.data(), out); });
        plus_ = sums_.data();
        minus_ = plus_ + d;
    } else {
        parts_.each(n_, entries_, [&](i64 lo, i64 hi, int) { table_.row_norms(rows_of_, lo, hi, norms_.data()); });
    }
    for (i64 i = 0; i < n_; ++i) size_ += weight(i) * norms_[static_cast<std::size_t>(i)];
    if (!useful) return;
    c.resize(static_cast<std::size_t>(d));
    const double share = total_ > 0.0 ? 1.0 / total_ : 1.0;
    for (i64 j = 0; j < d; ++j) c[static_cast<std::size_t>(j)] = share * (plus_[j] + minus_[j]);
    c_size_ = dot(c.data(), c.data(), d);
}

bool Ascent::far_off() const { return job_.intercept && kFarOff * mean() <= c_size_ && c_size_ > 0.0; }

void Ascent::begin(const double* at) {
    count_sides();
    first_read(d_ <= kNarrow || promising());
    if (!std::isfinite(size_)) {
        overflown = true;
        return;
    }
    hardness = 4.0 * loss_.steep * size_ / static_cast<double>(std::max<i64>(1, live_)) / lam_;
    bool zero = true;
    for (i64 j = 0; j < d_; ++j) zero = zero && at[j] == 0.0;
    if (zero)
        start_from_classes(at[d_]);
    else
        start_near(at);
    stiffness = job_.intercept && total_ > 0.0 ? kStiffness * mean() / lam_ : 0.0;
    plus_ = minus_ = nullptr;
    sums_ = {};
    if (!has_centre()) c = {};
}

// Compute the scores (x - c).w and the squared norms of x - c. One read of X.
void Ascent::centre_scores(const double* w) {
    passes += 0.5;
    along.resize(static_cast<std::size_t>(n_));
    Buffer<double> pairs(2 * c.size());
    for (std::size_t j = 0; j < c.size(); ++j) pairs[2 * j] = c[j], pairs[2 * j + 1] = w[j];
    parts_.each(n_, entries_, [&](i64 lo, i64 hi, int) {
        table_.two_scores(rows_of_, lo, hi, c.data(), w, pairs.data(), along.data(), z.data());
    });
    const double shifted = dot(c.data(), w, d_);
    for (std::size_t i = 0; i < along.size(); ++i) {
        norms_[i] = std::max(norms_[i] + (c_size_ - 2.0 * along[i]), 0.0);
        z[i] -= shifted;
    }
    size_ = std::max(0.0, size_ - total_ * c_size_);
}

// Start from theta: u is minus the slope there, times the factor in [0, 1] for which w = v/lam is nearest to theta.
void Ascent::start_near(const double* at) {
    double intercept = at[d_];
    if (far_off()) {
        centre_scores(at);
        intercept += dot(c.data(), at, d_);
    } else {
        std::vector<double> plain(at, at + d_);
        plain.push_back(0.0);
        parts_.each(n_, entries_,
                    [&](i64 lo, i64 hi, int) { table_.scores(rows_of_, lo, hi, plain.data(), z.data() + lo); });
    }
    std::vector<double> m(z), spare(m.size()), sums;
    for (i64 i = 0; i < n_; ++i) {
        double& margin = m[static_cast<std::size_t>(i)];
        margin = t_.sign[i] * (margin + intercept) + (t_.offset ? t_.offset[i] : 0.0);
    }
    table_.pointwise(job_.loss, n_, m.data(), spare.data(), u.data(), spare.data(), spare.data());
    for (double& each : u) each = -each;
    passes += 1.0;
    combine(u.data(), sums);
    const double size = dot(sums.data(), sums.data(), d_), along_it = dot(sums.data(), at, d_);
    const double t = size > 0.0 ? std::min(1.0, std::max(0.0, lam_ * along_it / size)) : 1.0;
    for (double& each : u) each *= t;
    for (double& each : sums) each *= t;
    take(sums, at[d_] + shift(at));
    best = theta[static_cast<std::size_t>(d_)];
    primal = 0.0;
    std::fill(b.begin(), b.end(), best);
}

// The optimal intercept at w = 0; sets `primal` to the loss there. Without offsets, all rows of a class are equal, so
// two rows suffice.
double Ascent::alone(double at) {
    double sign[2] = {1.0, -1.0}, zero[2] = {}, few[40];
    Settled found;
    if (t_.offset)
        found = table_.best_intercept(n_, t_, job_.loss, job_.intercept, z.data(), at, kInf, 1e-6, scratch_.data());
    else
        found = table_.best_intercept(2, {sign, nullptr, sides_}, job_.loss, job_.intercept, zero, at, kInf, 1e-6, few);
    primal = found.loss;
    return found.b;
}

// Compute the best multiple of the dual point at w = 0 and intercept `at`, and its w; false if it does not apply.
bool Ascent::guess(double at, double* w) {
    if (!loss_.classes || t_.offset || !plus_ || !(sides_[0] > 0.0 && sides_[1] > 0.0)) return false;
    double each[2] = {1.0, 1.0};
    if (loss_.smooth) {
        const double m[2] = {at, -at};
        double spare[2];
        table_.pointwise(job_.loss, 2, m, spare, each, spare, spare);
        each[0] = -each[0], each[1] = -each[1];
    }
    if (job_.intercept) {  // satisfy e = 0 up to rounding
        const double up = each[0], um = each[1];
        each[0] = std::min(up, um * sides_[1] / sides_[0]);
        each[1] = std::min(um, up * sides_[0] / sides_[1]);
    }
    for (i64 j = 0; j < d_; ++j) w[j] = each[0] * plus_[j] - each[1] * minus_[j];
    const double square = dot(w, w, d_) / lam_;
    if (!(square > 0.0 && std::isfinite(square) && each[0] > 0.0 && each[1] > 0.0)) return false;
    const Best found = job_.loss.id == LossId::logistic ? best_logistic(sides_, each, square)
                                                        : best_parabola(sides_, each, square, loss_.bend);
    const double t = found.t;
    const bool near = t >= kNear && 0.5 * t * t * square <= 0.5 * found.value;
    // for the hinge, the question is which rows of the larger class have u = 1; a small common u does not answer it
    if (!loss_.smooth && !(near && job_.intercept && std::min(each[0], each[1]) >= kEven)) return false;
    for (i64 j = 0; j < d_; ++j) w[j] *= t / lam_;
    start_ = {t * each[0], t * each[1], found.value, near};
    return true;
}

// Start from the dual point at w = 0 if it applies, otherwise from zero.
void Ascent::start_from_classes(double at) {
    best = alone(at);
    has_start_ = guess(best, theta.data());
    if (has_start_)
        for (i64 i = 0; i < n_; ++i) u[static_cast<std::size_t>(i)] = t_.sign[i] > 0.0 ? start_.plus : start_.minus;
    else
        std::fill(theta.begin(), theta.end(), 0.0);
    const bool near = has_start_ && start_.near && job_.intercept;
    if (near || far_off()) {
        centre_scores(theta.data());
        recount();
    }
    if (near) {
        const Settled found =
            table_.best_intercept(n_, t_, job_.loss, true, z.data(), best, kInf, 1e-3, scratch_.data());
        best = found.b;
        primal = found.loss + 0.5 * lam_ * dot(theta.data(), theta.data(), d_);
        slacks.push_back(primal - start_.dual);
        started_near = true;
        there = slacks[0] <= kSafety * job_.tol * primal;
        if (!loss_.smooth && !there) in_order();
    }
    const bool even = std::min(sides_[0], sides_[1]) >= kEven * std::max(sides_[0], sides_[1]);
    if (loss_.classes && !loss_.smooth && !has_start_ && job_.intercept && !t_.offset && (even || hardness > kEasy))
        best = (sides_[0] - sides_[1]) / total_;  // the optimum has all rows of the larger class at the kink
    theta[static_cast<std::size_t>(d_)] = best;
    std::fill(b.begin(), b.end(), best);
}

// For the hinge: set all u = 1, except that rows of the larger class farthest beyond the kink get u = 0. Few rows are
// near the kink, so epochs begin with those alone.
void Ascent::in_order() {
    std::fill(u.begin(), u.end(), 1.0);
    table_.balance(n_, t_, job_.loss, z.data(), b.data(), u.data(), scratch_.data());
    i64 given = 0, kept = 0;
    for (double each : u) given += each != 1.0, kept += each != 0.0;
    const bool less = given <= kept;  // sum over the smaller set
    std::vector<double> mass;
    std::vector<i64> list;
    for (i64 i = 0; i < n_; ++i) {
        const double each = u[static_cast<std::size_t>(i)];
        if (each == (less ? 1.0 : 0.0)) continue;
        list.push_back(i);
        mass.push_back(weight(i) * t_.sign[i] * (less ? each - 1.0 : each));
    }
    for (i64 j = 0; j < d_; ++j) theta[static_cast<std::size_t>(j)] = less ? plus_[j] - minus_[j] : 0.0;
    table_.list_add(rows_of_, list.data(), static_cast<i64>(list.size()), mass.data(), theta.data());
    passes += 0.5 * static_cast<double>(list.size()) / static_cast<double>(std::max<i64>(1, n_));
    double moved = 0;
    for (i64 j = 0; j < d_; ++j) {
        double& w = theta[static_cast<std::size_t>(j)];
        w /= lam_;
        const double off = w - (start_.plus * plus_[j] - start_.minus * minus_[j]) / lam_;
        moved += off * off;
    }
    recount();
    double dual = -0.5 * lam_ * dot(theta.data(), theta.data(), d_);
    for (i64 i = 0; i < n_; ++i) dual += weight(i) * u[static_cast<std::size_t>(i)];
    slacks[0] = primal - dual;  // the gap with the w of the class sums; the new w is closer to the optimum
    there = slacks[0] <= kSafety * job_.tol * primal;
    const double reach = std::sqrt(moved * mean());
    count_ = 0;
    for (i64 i = 0; i < n_; ++i)
        if (std::fabs(1.0 - t_.sign[i] * (z[static_cast<std::size_t>(i)] + best)) <= reach)
            rows_[static_cast<std::size_t>(count_++)] = i;
    visit_only();
}

}  // namespace linsep
