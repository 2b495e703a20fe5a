// Dual coordinate ascent: its epochs over rows, the intercept, and what its driver (dual/ascent.cpp) asks of the rows.
// Compiled once per instruction set: see core/dispatch.cpp.
#include "core/dispatch.hpp"
#include "dual/coordinate_ascent.hpp"
#include "dual/intercept.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

void do_dual_cd(Rows rows, i64 k0, i64 k1, Targets t, LossSpec l, CdJob job, const double* norms, double* u, double* z,
                double* b, double* theta, double* state) {
    visit(rows, [&](const auto& X) { dual_cd(X, k0, k1, t, l, job, norms, u, z, b, theta, state); });
}
void do_class_sums(Rows rows, i64 lo, i64 hi, Targets t, double* norms, double* out) {
    visit(rows, [&](const auto& X) { class_sums(X, lo, hi, t, norms, out); });
}
void do_two_scores(Rows rows, i64 lo, i64 hi, const double* a, const double* b, const double* pairs, double* za,
                   double* zb) {
    visit(rows, [&](const auto& X) { two_scores(X, lo, hi, a, b, pairs, za, zb); });
}
void do_shifted(i64 lo, i64 hi, Targets t, LossSpec l, const double* z, double b, double* out) {
    shifted(lo, hi, t, l, z, b, out);
}
void do_list_dots(Rows rows, const i64* list, i64 count, const double* v, double* out) {
    visit(rows, [&](const auto& X) { list_dots(X, list, count, v, out); });
}
void do_list_add(Rows rows, const i64* list, i64 count, const double* a, double* v) {
    visit(rows, [&](const auto& X) { list_add(X, list, count, a, v); });
}
Settled do_best_intercept(i64 n, Targets t, LossSpec l, int free, const double* z, double b, double reach, double fine,
                          double* room) {
    return best_intercept(n, t, l, free != 0, z, b, reach, fine, room);
}
Settled do_best_among(const i64* rows, i64 count, Targets t, LossSpec l, int free, const double* z, const double* u,
                      double e, double b, double reach, double fine, double* room) {
    return best_among(rows, count, t, l, free != 0, z, u, e, b, reach, fine, room);
}
void do_arrange(Rows rows, i64 count, const i64* list, std::uint64_t seed, i64* order, i64* spare) {
    visit(rows, [&](const auto& X) { arrange(X, count, list, seed, order, spare); });
}
void do_balance(i64 n, Targets t, LossSpec l, const double* z, const double* seen, double* u, double* room) {
    balance(n, t, l, z, seen, u, room);
}
i64 do_remaining(i64 count, i64* rows) { return remaining(count, rows); }
double do_quantile(i64 n, double* x, double* weight, double target) { return quantile(n, x, weight, target); }
void do_shuffle(i64 count, std::uint64_t seed, i64* order) { shuffle(count, seed, order); }

}  // namespace

void fill_dual(Table& table) {
    table.dual_cd = do_dual_cd;
    table.class_sums = do_class_sums;
    table.two_scores = do_two_scores;
    table.shifted = do_shifted;
    table.list_dots = do_list_dots;
    table.list_add = do_list_add;
    table.best_intercept = do_best_intercept;
    table.best_among = do_best_among;
    table.arrange = do_arrange;
    table.balance = do_balance;
    table.remaining = do_remaining;
    table.quantile = do_quantile;
    table.shuffle = do_shuffle;
}

}  // namespace linsep::LINSEP_ARCH
