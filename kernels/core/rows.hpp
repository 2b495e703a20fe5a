// The linear algebra of a chunk of rows, for dense and CSR storage: everything above is written once, on these.
//   dots      z_i  = x_i . w + b
//   scores_and_sizes    z = X theta + b, q = |X| |theta| + |b| and |x|^2, in one read
//   scores_and_steps    these, and the change of z along a step
//   add       g   += sum_i a_i x_i          over a list of rows (rows with a_i = 0 are left out by the caller)
//   dots_k    Z    = X W + b', add_k  G += X'A   for k columns at once
#pragma once
#include "core/api.hpp"
#include "core/csr_rows.hpp"
#include "core/dense_rows.hpp"
#include "core/two_parts.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

// The rows in two halves, the first of whole chunks, if a pass over them is work enough for two threads.
template <class R>
TwoParts halves(const R& X, Helper helper) {
    const double entries = (double)X.n_entries();
    const bool two = X.n && worth_halving(entries, entries / (double)X.n);
    return {X.n, two ? X.n / 2 / kMaxChunk * kMaxChunk : X.n, helper};
}

// Runs f on the rows in their storage.
template <class F>
auto visit(const Rows& r, F f) {
    switch (r.store) {
        case Store::dense64:
            return f(DenseRows<double>(r));
        case Store::dense32:
            return f(DenseRows<float>(r));
        case Store::csr64:
            return f(CsrRows<double>(r));
        default:
            return f(CsrRows<float>(r));
    }
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
