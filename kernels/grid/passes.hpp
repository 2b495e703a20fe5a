// Sums of each fold in one pass over X, for the models of a grid of C and folds (closing pass: grid/closing.hpp).
//
// Every row belongs to one part of the data (a fold) or to none (-1). Model q is trained on the rows outside its part.
#pragma once
#include "softmax/passes.hpp"
#include "sums/sweep.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

// Sums of each part at theta: loss and gradient with respect to (w, b); out is (parts + 1, d + 2), rows of no part
// first. curvature gets h = s l''(m) of every row; moments (parts + 1, d + 1), may be null, gets the sums of h (x, 1).
template <class R>
void part_sweep(const R& X, i64 lo, i64 hi, const Targets& t, LossSpec spec, const i64* part, i64 parts,
                const double* theta, double* out, double* curvature, double* moments) {
    const LossOps loss = ops(spec.id);
    Chunk c;
    int list[kRoom];
    double a[kRoom];
    for (i64 r = lo; r < hi; r += X.chunk()) {
        const int nr = (int)min64(X.chunk(), hi - r), np = padded(nr);
        X.dots(r, nr, theta, theta[X.d], c.m);
        margins(c, t, r, nr);
        loss.at(np, spec.shape, c.m, c.value, c.slope, c.curvature);
        out[0] += not_finite(c.m, np);
        for (int i = 0; i < nr; ++i) curvature[r + i] = c.weight[i] * c.curvature[i];
        for (i64 f = 0; f <= parts; ++f) {
            double* o = out + f * (X.d + 2);
            int count = 0;
            double sum = 0, value = 0;
            for (int i = 0; i < nr; ++i) {
                if (part[r + i] + 1 != f) continue;
                const double slope = c.weight[i] * t.sign[r + i] * c.slope[i];
                value += c.weight[i] * c.value[i];
                sum += slope;
                list[count] = i;
                a[count] = slope;
                count += slope != 0.0;
            }
            o[0] += value;
            o[X.d + 1] += sum;
            X.add(r, list, count, a, o + 1);
            if (!moments) continue;
            double* h = moments + f * (X.d + 1);
            count = 0;
            for (int i = 0; i < nr; ++i) {
                if (part[r + i] + 1 != f) continue;
                list[count] = i;
                a[count] = curvature[r + i];
                h[X.d] += a[count++];
            }
            X.add(r, list, count, a, h);
        }
    }
}

// Gram matrix of each part (core/gram.hpp): out is (parts + 1) triangles, rows of no part first. Each part is processed
// over all rows, so that it fills its panels; a row is read only for its own part. scratch: gram_scratch + hi - lo
// doubles.
template <class R>
void part_gram(const R& X, i64 lo, i64 hi, const i64* part, i64 parts, const double* h, const double* mu, bool single,
               double* out, double* scratch) {
    const i64 order = X.d + 1, count = hi - lo;
    double* mine = scratch;
    double* pack = scratch + count;
    const R here = from_row(X, lo);
    for (i64 f = 0; f <= parts; ++f) {
        i64 rows = 0;
        for (i64 i = 0; i < count; ++i) {
            const bool inside = part[lo + i] + 1 == f;
            mine[i] = inside ? h[lo + i] : 0.0;
            rows += inside;
        }
        if (!rows) continue;
        if (single)
            gram_single(here, 0, count, mine, mu, out + f * order * order, pack, true);
        else
            gram(here, 0, count, mine, mu, out + f * order * order, pack);
    }
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
