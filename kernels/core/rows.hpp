// Linear algebra on a chunk of rows, for dense and CSR storage. All kernels are templates on these operations:
//   dots                z_i = x_i . w + b
//   scores_and_sizes    z = X theta + b, q = |X| |theta| + |b| and |x|^2, in one read of the rows
//   scores_and_steps    in addition, the change of z along a step
//   add                 g += sum_i a_i x_i over a list of rows (the caller omits rows with a_i = 0)
//   dots_k, add_k       Z = X W + b' and G += X'A, for k columns at once
#pragma once
#include "core/api.hpp"
#include "core/csr_rows.hpp"
#include "core/dense_rows.hpp"
#include "core/two_parts.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

// Split the rows in two halves, the first made of whole chunks, if a pass over them is long enough for two threads.
template <class R>
TwoParts halves(const R& X, Helper helper) {
    const double entries = (double)X.n_entries();
    const bool two = X.n && worth_halving(entries, entries / (double)X.n);
    return {X.n, two ? X.n / 2 / kMaxChunk * kMaxChunk : X.n, helper};
}

// Call f with the rows as the class of their storage format.
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
