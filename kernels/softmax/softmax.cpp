// Passes of the softmax loss, and a complete fit.
// Compiled once per instruction set: see core/dispatch.cpp.
#include "core/dispatch.hpp"
#include "softmax/directions.hpp"
#include "softmax/fit.hpp"
#include "softmax/products.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

template <class R>
int softmax_chunk(const R& X, i64 k) {
    return R::dense ? softmax_step(X, k) : 1;
}

}  // namespace

void fill_softmax(Table& table) {
#include "softmax/kernels.def"
}

}  // namespace linsep::LINSEP_ARCH
