#include "dual/ascent.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace linsep {

double dot(const double* a, const double* b, std::int64_t size);  // dual/dual_start.cpp

namespace {

using i64 = std::int64_t;

constexpr double kInf = std::numeric_limits<double>::infinity();
// Extrapolation of the multiplier: smallest ratio of successive steps, largest change of that ratio, and largest
// extrapolation in units of the last step.
constexpr double kSlow = 0.3, kSteady = 0.1, kFar = 8.0;
constexpr double kFine = 0.02;  // Newton step of the multiplier whose square is below the error left by an epoch
constexpr double kStay = 4.0;   // maximum number of epochs over all rows before any is removed
constexpr double kGain = 12.0;  // approximate factor by which a round on the free rows reduces the slacks
// Ratio of successive slacks from which the rows that change most, at most kAlike of them, are visited repeatedly.
constexpr double kSlowly = 0.7;
constexpr i64 kAlike = 8, kRepeats = 100;
constexpr i64 kFew = 2;  // the list is short if it holds less than 1/kFew of the rows
// Smallest number of rows from which alone an intercept is computed, and the largest relative change of it.
constexpr i64 kEnough = 32;
constexpr double kWithin = 0.1;
constexpr double kNear = 0.1;         // relative gap of a good start for Newton's method; above 0.4 a start hurts
constexpr double kOverdrawn = 1.5;    // spent plus predicted passes may exceed the budget by this factor
constexpr double kPatience = 0.1;     // share of the budget to be spent before a prediction can end ascent
constexpr double kInCache = 8 << 20;  // bytes of data up to which random access to rows costs little
constexpr double kSpare = 20.0;       // passes between two closing passes while the predicted gap is not near tol
constexpr i64 kSpareRounds = 4;       // minimum number of epochs between them if each has a round on the free rows
// If less than 1/kFewLeft of the rows are on the list, the predicted gap must be smaller by the factor kSurely.
constexpr double kFewLeft = 3.0, kSurely = 1.6;
constexpr double kStrong = 1.0;                           // hardness up to which the last epoch is extrapolated
constexpr double kVeryStrong = 0.3, kExtrapolated = 0.4;  // below this hardness, it multiplies the gap by kExtrapolated
constexpr double kHelped = 0.7;  // recalling rows has helped if the gap relative to the one before is at most this
constexpr double kWider = 2.0;   // ratio of gap to predicted gap from which removed rows are checked again

double count_entries(const Rows& rows) {
    return is_dense(rows.store) ? static_cast<double>(rows.n) * static_cast<double>(rows.d)
                                : static_cast<double>(rows.starts[rows.n]);
}

}  // namespace

Ascent::Ascent(const Table& table, const AscentJob& job, const double* at)
    : budget(kInf),
      primal(kInf),
      table_(table),
      job_(job),
      t_(job.t),
      loss_(facts(job.loss)),
      n_(job.rows.n),
      d_(job.rows.d),
      lam_(job.lam),
      helper_thread_(job.two),
      parts_{helper_thread_.helper(), job.large},
      compressed_(job.rows, parts_),
      rows_of_(compressed_.rows()),
      entries_(count_entries(rows_of_)),
      far_(kInf),
      recalled_(kInf),
      reach_(kInf) {
    const std::size_t n = static_cast<std::size_t>(n_);
    for (auto* each : {&u, &z, &b}) each->resize(n);
    norms_.resize(n);
    theta.resize(static_cast<std::size_t>(d_) + 1);
    scratch_.resize(static_cast<std::size_t>(std::max(intercept_scratch(n_), among_scratch(n_ / kFew))));
    rows_.resize(n);
    order_.resize(n);
    // Adjacent rows are often similar (for example sorted by class), and visiting them in sequence wastes work. Visit
    // rows in random order, or in buckets of eight if the data exceed the cache.
    bucket_ = 12.0 * entries_ <= kInCache ? 1 : 8;
    all_back();
    begin(at);
}

double Ascent::shift(const double* w) const { return has_centre() ? dot(c.data(), w, d_) : 0.0; }

// Recompute e and f from u and w.
void Ascent::recount() {
    state[0] = 0.0;
    for (i64 i = 0; i < n_; ++i) state[0] += weight(i) * t_.sign[i] * u[static_cast<std::size_t>(i)];
    state[3] = lam_ * shift(theta.data());
}

// Set w' and e from the sums (v, e), and the multiplier.
void Ascent::take(const std::vector<double>& sums, double at) {
    state[0] = sums.back();
    state[3] = shift(sums.data());
    for (std::size_t j = 0; j + 1 < sums.size(); ++j) theta[j] = sums[j] / lam_;
    theta.back() = at;
}

void Ascent::primal_w(double* w) const {
    std::copy(theta.begin(), theta.end() - 1, w);
    const double share = state[0] / lam_;
    for (i64 j = 0; has_centre() && j < d_; ++j) w[j] -= share * c[static_cast<std::size_t>(j)];
}

// Sum of s sign u (x, 1), that is v and e. One pass.
void Ascent::combine(const double* at, std::vector<double>& sums) {
    std::vector<double> mass(static_cast<std::size_t>(n_)), other;
    for (i64 i = 0; i < n_; ++i) mass[static_cast<std::size_t>(i)] = weight(i) * t_.sign[i] * at[i];
    passes += 1.0;
    parts_.sum(n_, entries_, d_ + 1, sums, other,
               [&](i64 lo, i64 hi, double* out) { table_.combine(rows_of_, lo, hi, mass.data(), out); });
}

void Ascent::restart(const double* at, double multiplier) {
    std::copy(at, at + n_, u.begin());
    std::vector<double> sums;
    combine(at, sums);
    take(sums, multiplier);
    std::vector<double> w(static_cast<std::size_t>(d_));
    primal_w(w.data());
    theta.back() += shift(w.data());
    steps_.clear();
    all_back();
}

i64 Ascent::free() const {
    i64 count = 0;
    for (double each : u) count += each > loss_.low && each < loss_.high;
    return count;
}

// Let the next epoch visit all rows without removing any.
void Ascent::all_back() {
    asked = epochs;
    far_ = kInf;
    stay_ = std::min(kStay, 2.0 * stay_);  // after a recall, keep rows longer
    for (i64 i = 0; i < n_; ++i) rows_[static_cast<std::size_t>(i)] = i;
    count_ = n_;
    visit_only();
}

void Ascent::visit_only() {
    buckets_ = (count_ + bucket_ - 1) / bucket_;
    for (i64 k = 0; k < buckets_; ++k) order_[static_cast<std::size_t>(k)] = k;
}

// Let the next epoch visit the rows that violate optimality at the current w (one read of X); removed rows were checked
// at an earlier w.
void Ascent::recall() {
    std::vector<double> at(static_cast<std::size_t>(d_) + 1);
    primal_w(at.data());
    at.back() = -shift(at.data());
    parts_.each(n_, entries_, [&](i64 lo, i64 hi, int) { table_.scores(rows_of_, lo, hi, at.data(), z.data() + lo); });
    passes += 0.5;
    stale_ = true;
    asked = epochs;
    refresh();
    std::fill(b.begin(), b.end(), best);
    // with a kink, the row that determines the optimal intercept has slope 0 up to rounding: keep it on the list
    const double far = std::max(far_ < kInf ? far_ : 0.0, 1e-10 * (1.0 + std::fabs(best)));
    count_ = 0;
    for (i64 i = 0; i < n_; ++i) {
        const std::size_t k = static_cast<std::size_t>(i);
        const double m = t_.sign[i] * (z[k] + best) + (t_.offset ? t_.offset[i] : 0.0),
                     slope = loss_.kink - m - loss_.bend * u[k];
        const bool rests = (u[k] <= loss_.low && slope < -far) || (u[k] >= loss_.high && slope > far);
        rows_[static_cast<std::size_t>(count_)] = i;
        count_ += !rests;
    }
    visit_only();
}

double Ascent::share() const { return static_cast<double>(count_) / static_cast<double>(std::max<i64>(1, n_)); }

// Begin an epoch: one visit to every row of the list, in a new random order.
void Ascent::set_out() {
    ++epochs;
    state[1] = state[2] = 0.0;
    const std::size_t done = slacks.size();
    slowly_ = lately() > 3 && slacks[done - 1] > kSlowly * slacks[done - 2];
    if (slowly_) before_ = u;
    walking_ = {order_.data(), buckets_, bucket_, 0, rows_.data(), count_, far_};
    arrange_walk();
}

void Ascent::arrange_walk() {
    const std::uint64_t seed = job_.seed * 0x9E3779B1u + ++walks_;
    i64 spare[256];
    if (walking_.bucket == 1 && walking_.list)
        table_.arrange(rows_of_, walking_.size, walking_.list, seed, walking_.order, spare);
    else
        table_.shuffle(walking_.size, seed, walking_.order);
    const i64 rows = walking_.list ? walking_.count : walking_.size;
    read(static_cast<double>(rows) / static_cast<double>(std::max<i64>(1, n_)));
}

// Continue the epoch until `entries` is used up; return whether it is complete.
bool Ascent::walk(double* entries) {
    const i64 rows = walking_.list ? walking_.count : walking_.size;
    const double each =
        entries_ * static_cast<double>(rows) / static_cast<double>(std::max<i64>(1, n_ * walking_.size));  // per bucket
    while (walking_.at < walking_.size) {
        if (!(*entries > 0.0)) return false;
        const double room = *entries / std::max(each, 1e-9);
        const i64 left = walking_.size - walking_.at;
        const i64 step = room < static_cast<double>(left) ? std::max<i64>(1, static_cast<i64>(room)) : left;
        const CdJob job{lam_,
                        stiffness,
                        walking_.order,
                        walking_.bucket,
                        walking_.list,
                        walking_.list ? walking_.count : n_,
                        walking_.list ? walking_.far : kInf,
                        has_centre() ? along.data() : nullptr,
                        has_centre() ? c_size_ : 0.0,
                        helper_thread_.helper()};
        table_.dual_cd(rows_of_, walking_.at, walking_.at + step, t_, job_.loss, job, norms_.data(), u.data(), z.data(),
                       b.data(), theta.data(), state);
        walking_.at += step;
        *entries -= each * static_cast<double>(step);
    }
    return true;
}

// Visit the few rows that changed most repeatedly: nearly identical rows exchange their u in small steps, which slows
// down the convergence of all others.
void Ascent::revisit() {
    const auto moved = [&](i64 i) {  // removed entries are negative, and have not changed
        const std::size_t k = static_cast<std::size_t>(i);
        return i < 0 ? 0.0 : std::fabs(u[k] - before_[k]);
    };
    double most = 0;
    for (i64 k = 0; k < count_; ++k) most = std::max(most, moved(rows_[static_cast<std::size_t>(k)]));
    std::vector<i64> few;
    for (i64 k = 0; k < count_ && static_cast<i64>(few.size()) <= kAlike; ++k) {
        const i64 i = rows_[static_cast<std::size_t>(k)];
        if (moved(i) >= 0.25 * most && i >= 0) few.push_back(i);
    }
    const i64 count = static_cast<i64>(few.size());
    if (count < 2 || count > kAlike) return;
    std::vector<i64> order;
    for (i64 k = 0; k < kRepeats * kAlike / count; ++k) order.insert(order.end(), few.begin(), few.end());
    const double slack = state[1], slope = state[2];
    double entries = kInf;
    walking_ = {order.data(), static_cast<i64>(order.size()), 1, 0, nullptr, n_, kInf};
    arrange_walk();
    walk(&entries);
    state[1] = slack, state[2] = slope;
}

void Ascent::finish_epoch() {
    if (slowly_) revisit();
    if (strong()) went_on_ = extrapolation_.go(view(), z.data(), b.data());
    const double before = theta.back();
    if (far_ < kInf) {
        count_ = table_.remaining(count_, rows_.data());
        const i64 buckets = (count_ + bucket_ - 1) / bucket_;
        if (buckets < buckets_) visit_only();
    }
    settle_intercept(before + stiffness * state[0]);
    extrapolate(theta.back() - before);
    slacks.push_back(state[1]);
    if (loss_.rests && static_cast<double>(lately()) >= stay_)
        far_ = job_.leave * state[2] + 0.5 * std::fabs(theta.back() - before);
}

// Return whether the penalty is so strong that few epochs suffice, for a smooth loss whose conjugate is quadratic.
bool Ascent::strong() const { return hardness <= kStrong && loss_.smooth && job_.loss.id != LossId::logistic; }

void Ascent::halt() {
    if (phase_ != Phase::walk) return;
    slowly_ = false;
    finish_epoch();
    phase_ = Phase::epoch;
}

// Set the multiplier to the optimal intercept at the scores z. If the list is short: the optimum with the u of the
// other rows fixed, unless that is a large change. Otherwise also update the primal value.
void Ascent::settle_intercept(double at) {
    stale_ = kFew * count_ < n_ && count_ >= kEnough;
    if (stale_) {
        best = table_
                   .best_among(rows_.data(), count_, t_, job_.loss, job_.intercept, z.data(), u.data(), state[0], at,
                               reach_, kFine, scratch_.data())
                   .b;
        stale_ = std::fabs(best - at) <= kWithin * (1.0 + std::fabs(at));
    }
    if (!stale_) settle(at);
    reach_ = 2.0 * std::fabs(best - at);
    theta.back() = best;
}

// Recompute the optimal intercept and the primal value from all rows, if they are stale.
void Ascent::refresh() {
    if (!stale_) return;
    stale_ = false;
    settle(best);
}

void Ascent::settle(double at) {
    const Settled found =
        table_.best_intercept(n_, t_, job_.loss, job_.intercept, z.data(), at, reach_, kFine, scratch_.data());
    best = found.b;
    double size = dot(theta.data(), theta.data(), d_);
    if (has_centre()) {
        const double e = state[0] / lam_;
        size += e * (e * c_size_ - 2.0 * state[3] / lam_);
    }
    primal = found.loss + 0.5 * lam_ * size;
}

double Ascent::jump(double first, double second, double third) {
    if (first == 0.0 || second == 0.0 || third == 0.0) return 0.0;
    const double ratio = third / second;
    const bool steady = kSlow < ratio && ratio < 1.0 && std::fabs(ratio - second / first) < kSteady;
    return steady ? third * std::min(kFar, third / (second - third)) : 0.0;
}

// If the steps of the multiplier shrink slowly and steadily, add the extrapolated sum of the remaining ones.
void Ascent::extrapolate(double step) {
    if (steps_.size() == 3) steps_.erase(steps_.begin());
    steps_.push_back(step);
    const double rest = steps_.size() < 3 ? 0.0 : jump(steps_[0], steps_[1], steps_[2]);
    if (rest == 0.0) return;
    theta.back() += rest;
    steps_.clear();  // three ordinary steps before the next extrapolation
}

// Predict the current duality gap from the slacks of the last epoch and their rate of decrease. The first epoch starts
// far from the optimum, where slacks predict nothing; the hardness is used instead.
double Ascent::predicted_gap() const {
    const std::size_t count = slacks.size();
    if (count < 2) return count ? 0.1 * hardness * primal : kInf;
    const double before = slacks[count - 2], last = slacks[count - 1];
    if (count == 2) {
        if (started_near && loss_.smooth)  // measured at k = 0.01 and 0.08
            return last * std::min(0.3, std::max(1e-4, 5.0 * hardness * hardness));
        return last * std::min(0.3, std::max(loss_.smooth ? 0.03 : 0.3, 0.1 * hardness));
    }
    const double shrinking = before > 0.0 ? std::min(1.0, std::max(0.05, last / before)) : 1.0;
    // convergence slows down at first
    return last * shrinking * (count == 3 ? 2.0 : 1.15) * (went_on_ && hardness <= kVeryStrong ? kExtrapolated : 1.0);
}

// Predicted number of epochs until the gap is at most `gap`, at the rate of the last half of the epochs.
double Ascent::epochs_to(double gap) const {
    const i64 span = std::max<i64>(3, lately() / 2), count = static_cast<i64>(slacks.size());
    const double now = predicted_gap(), last = slacks.back();
    if (now <= gap) return 0.0;
    const double before = slacks[static_cast<std::size_t>(std::max<i64>(0, count - 1 - span))];
    const bool falling = 0.0 < last && last < before && gap > 0.0;
    return falling ? static_cast<double>(span) * std::log(now / gap) / std::log(before / last) : kInf;
}

// Cost of an epoch with a round on the free rows [epochs].
double Ascent::round_price() const {
    return FreeRound::price(static_cast<double>(free()) / static_cast<double>(std::max<i64>(1, count_)));
}

// Return whether a round on the free rows reduces the slacks more than epochs of the same cost, and many remain.
bool Ascent::many_more() const {
    const std::size_t count = slacks.size();
    if (lately() < 3 || count < 3) return false;
    const double before = slacks[count - 3], last = slacks[count - 1], goal = job_.tol * primal;
    if (last <= goal) return false;
    const double few = 0.5 * round_price();  // the rate is measured over two epochs
    return before <= last || few * std::log(before / last) < std::log(std::min(kGain, last / goal));
}

// Return whether the predicted passes exceed the budget, and a few more would not make a better start for Newton's
// method. Rounds on the free rows count by the rows they read. Predictions tend to be too low, so spent passes count
// too. Slacks vary from epoch to epoch, so a prediction of few epochs is not worth a method that costs thousands.
// Epochs that read hardly any rows spend nothing, so their number is limited as well.
bool Ascent::over_budget() const {
    if (!finite()) return true;
    const bool patient = spent_ <= kPatience * budget && static_cast<double>(epochs) <= budget;
    if (patient || lately() < std::max<i64>(6, epochs / 3)) return spent_ > budget;  // too early for a prediction
    const double each = share() * (slow_ ? round_price() : 1.0);
    const double left = each * epochs_to(job_.tol * primal);
    if (left <= budget && spent_ + left <= kOverdrawn * budget) return false;
    const double near = kNear * primal;
    return !loss_.smooth || predicted_gap() <= near || epochs_to(near) > 10.0;
}

// Stalled: no progress in 50 epochs without recalled rows, or in 200 epochs with them.
bool Ascent::is_stalled(const double* slacks, i64 count, i64 lately) {
    const auto least = [&](i64 from, i64 to) { return *std::min_element(slacks + from, slacks + to); };
    if (count > 400 && least(count - 200, count) > 0.9 * least(0, count - 200)) return true;
    if (lately <= 100 || count <= 50) return false;  // recalled rows increase the slacks
    return least(count - 50, count) > 0.9 * least(std::max<i64>(0, count - lately), count - 50);
}

bool Ascent::finite() const { return std::isfinite((slacks.empty() ? 0.0 : slacks.back()) + primal + theta.back()); }

void Ascent::point(double* at, double* dual) {
    refresh();
    primal_w(at);
    at[d_] = best - shift(at);
    std::copy(u.begin(), u.end(), dual);
    if (job_.intercept && n_ > 0) table_.balance(n_, t_, job_.loss, z.data(), b.data(), dual, scratch_.data());
}

// Return whether the predicted gap is at most tol.
bool Ascent::near_now() {
    double gap = bias_ * predicted_gap();
    if (kFewLeft * share() < 1.0) gap *= kSurely;  // another epoch costs less than a failed closing pass
    if (stale_ && gap <= job_.tol * primal) refresh();
    return gap <= job_.tol * primal;
}

// Return whether a closing pass is due: the predicted gap is at most tol, or the last closing pass was long ago.
bool Ascent::due() {
    if (near_now()) return true;
    return passes - closed_at_ >= kSpare && !(slow_ && epochs - closed_epochs_ < kSpareRounds);
}

// Record the gap of a closing pass. If it is much larger than predicted, recall the removed rows that violate
// optimality, or all rows if that did not help before.
void Ascent::report_gap(double gap) {
    const double guess = predicted_gap(), ratio = gap / (guess != 0.0 ? guess : 1.0);
    if (share() < 1.0 && (near_ || ratio > kWider)) {
        if (gap <= kHelped * recalled_)
            recall();
        else
            all_back();
        recalled_ = gap;
    }
    bias_ = std::min(4.0, std::max(0.7, ratio));
}

FreeView Ascent::view() {
    return {table_,
            rows_of_,
            t_,
            parts_,
            loss_.low,
            loss_.high,
            loss_.bend,
            loss_.kink,
            lam_,
            stiffness,
            has_centre() ? c_size_ : 0.0,
            entries_,
            norms_.data(),
            has_centre() ? along.data() : nullptr,
            u.data(),
            theta.data(),
            state};
}

// Collect the free rows for a round; return false if there are too few.
bool Ascent::begin_round() {
    const double slack = slacks.empty() || slacks.back() == 0.0 ? 1.0 : slacks.back();
    const bool some = round_.begin(view(), 0.3 * job_.tol * primal / slack);
    read(round_.spent());
    visits_ = 0;
    return some;
}

bool Ascent::solve_round(double* entries) {
    const bool done = round_.solve(view(), entries);
    if (done) round_.move(view());
    read(round_.spent());
    return done;
}

// Begin an epoch over the free rows alone; the multiplier is not changed.
void Ascent::visit_free() {
    own_ = round_.list();
    walking_ = {own_.data(), static_cast<i64>(own_.size()), 1, 0, nullptr, n_, kInf};
    arrange_walk();
}

void Ascent::epoch() {
    double entries = kInf;
    set_out();
    walk(&entries);
    finish_epoch();
}

void Ascent::improve() {
    double entries = kInf;
    if (!begin_round()) return;
    solve_round(&entries);
    for (int k = 0; k < FreeRound::kEpochs; ++k) {
        visit_free();
        walk(&entries);
    }
}

// Request a closing pass.
Next Ascent::to_close() {
    near_ = near_now();
    closed_at_ = passes;
    closed_epochs_ = epochs;
    return Next::close;
}

Next Ascent::advance(double entries, double limit) {
    for (;;) {
        const bool enough = !(entries > 0.0) || passes >= limit;
        switch (phase_) {
            case Phase::first:
                phase_ = Phase::epoch;
                if (there) return to_close();
                break;
            case Phase::epoch:
                if (enough) return Next::pause;
                set_out();
                phase_ = Phase::walk;
                break;
            case Phase::walk:
                if (!walk(&entries)) return Next::pause;
                finish_epoch();
                last_ = (most < 0 ? over_budget() : epochs >= most);
                last_ = last_ || is_stalled(slacks.data(), static_cast<i64>(slacks.size()), lately());
                if (!finite()) return Next::broken;
                phase_ = Phase::after;
                if (due() || last_) return to_close();
                break;
            case Phase::after:
                if (last_) return Next::end;
                phase_ = Phase::round;
                if (loss_.rests && !slow_ && many_more()) {
                    slow_ = true;
                    return Next::slow;
                }
                break;
            case Phase::round:
                phase_ = slow_ && begin_round() ? Phase::solve : Phase::epoch;
                break;
            case Phase::solve: {
                double left = std::min(entries, 2.0 * entries_ * (limit - passes));
                const double had = left;
                const bool done = solve_round(&left);
                entries -= had - left;
                if (!done) return Next::pause;
                phase_ = Phase::some;
                break;
            }
            case Phase::some:
                if (enough) return Next::pause;
                phase_ = visits_ < FreeRound::kEpochs ? Phase::visit : Phase::epoch;
                if (phase_ == Phase::visit) visit_free();
                break;
            case Phase::visit:
                if (!walk(&entries)) return Next::pause;
                ++visits_;
                phase_ = Phase::some;
                break;
        }
    }
}

}  // namespace linsep
