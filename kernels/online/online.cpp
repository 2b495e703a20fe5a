// Perceptron and stochastic descent.
// Compiled once per instruction set: see core/dispatch.cpp.
#include "core/dispatch.hpp"
#include "online/passes.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

void do_perceptron(Rows rows, const double* sign, PerceptronJob job, double* theta) {
    visit(rows, [&](const auto& X) { perceptron(X, sign, job, theta); });
}
void do_sgd(Rows rows, Classes y, LossSpec l, SgdJob job, const i64* draws, i64 count, double* W, double* sums,
            double* scratch) {
    visit(rows, [&](const auto& X) { sgd(X, y, l, job, draws, count, W, sums, scratch); });
}
void do_losses_k(Rows rows, i64 lo, i64 hi, Classes y, LossSpec l, const double* W, i64 K, const i64* of, double* out,
                 double* scratch) {
    visit(rows, [&](const auto& X) { losses_k(X, lo, hi, y, l, W, K, of, out, scratch); });
}

}  // namespace

void fill_online(Table& table) {
    table.perceptron = do_perceptron;
    table.sgd = do_sgd;
    table.losses_k = do_losses_k;
}

}  // namespace linsep::LINSEP_ARCH
