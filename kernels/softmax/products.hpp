// Products with the Hessian of the softmax loss for many features and classes, in single or double precision:
//   out (d + 1, K) += sum s (x, 1) ((diag p - p p') V'(x, 1))'
// The probabilities p are read from planes, or, if the n x k numbers are not stored, recomputed from the scores of W,
// which takes half as many operations again. Both products of a chunk with X use packed panels.
#pragma once
#include "softmax/passes.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

template <class E, class T>
struct PackedProduct {
    const DenseRows<T>& X;
    Classes y;
    Panels<E> panels;
    i64 k, K;
    E *P, *Q;  // (kPanelRows, panels.K) each

    PackedProduct(const DenseRows<T>& rows, const Classes& classes, double* scratch)
        : X(rows), y(classes), panels(rows.d, classes.k, scratch), k(classes.k), K(panels.K), Q(panels.Z) {
        P = reinterpret_cast<E*>(scratch + panel_scratch(rows.d, classes.k));
        for (i64 j = 0; j < kPanelRows * K; ++j) P[j] = E(0);
        panels.clear();
    }
    void read_planes(const double* p, i64 stride, i64 r, int nr) const {
        for (i64 c = 0; c < k; ++c)
            for (int i = 0; i < nr; ++i) P[i * K + c] = (E)p[c * stride + r + i];
    }
    // Replace each row of P by its softmax.
    void softmax(int nr) const {
        for (int i = 0; i < nr; ++i) {
            E* z = P + i * K;
            const i64 whole = k / VL * VL;
            vd tops = splat((double)z[0]);
            for (i64 c = 0; c < whole; c += VL) tops = vmax(tops, load(z + c));
            double top = (double)z[0], numbers[VL];
            store(numbers, tops);
            for (int q = 0; q < VL; ++q) top = numbers[q] > top ? numbers[q] : top;
            for (i64 c = whole; c < k; ++c) top = (double)z[c] > top ? (double)z[c] : top;
            vd sum{};
            for (i64 c = 0; c < k; c += VL) {
                vd e = vexp(load(z + c) - top);  // Z has room for whole vectors
                if (c == whole) {
                    store(numbers, e);
                    for (i64 q = k - whole; q < VL; ++q) numbers[q] = 0.0;
                    e = load(numbers);
                }
                sum += e;
                put(z + c, e);
            }
            const vd inverse = splat(1.0 / total(sum));
            for (i64 c = 0; c < k; c += VL) put(z + c, load(z + c) * inverse);
        }
    }
    static void put(E* to, vd v) {
        typedef E vector __attribute__((vector_size(sizeof(E) * VL)));
        const vector rounded = __builtin_convertvector(v, vector);
        std::memcpy(to, &rounded, sizeof rounded);
    }
    static E sum_of(const typename Lanes<E>::vector& v) {
        E lanes[Lanes<E>::count];
        std::memcpy(lanes, &v, sizeof v);
        for (int half = Lanes<E>::count / 2; half; half /= 2)
            for (int q = 0; q < half; ++q) lanes[q] += lanes[q + half];
        return lanes[0];
    }
    // Replace Q = X'V by s p (Q - p.Q); the entry of the label is minus the sum of the others. P is 0 in the padding;
    // at the label it is overwritten.
    void weigh(i64 r, int nr) const {
        using Vector = typename Lanes<E>::vector;
        constexpr int lanes = Lanes<E>::count;
        for (int i = 0; i < nr; ++i) {
            E *q = Q + i * K, *p = P + i * K;
            const i64 own = y.label[r + i];
            const E s = (E)(y.weight ? y.weight[r + i] : 1.0), mine = q[own];
            Vector mean{}, sum{};
            for (i64 c = 0; c < k; c += lanes) mean += Lanes<E>::load(p + c) * (Lanes<E>::load(q + c) - mine);
            const E shift = mine + sum_of(mean);
            p[own] = E(0);
            for (i64 c = 0; c < k; c += lanes) {
                const Vector v = s * Lanes<E>::load(p + c) * (Lanes<E>::load(q + c) - shift);
                std::memcpy(q + c, &v, sizeof v);
                sum += v;
            }
            q[own] = -sum_of(sum);
        }
    }
    void run(i64 lo, i64 hi, const double* p, i64 stride, const double* W, const double* V, double* out) {
        double* totals = out + X.d * padded_classes(k);
        panels.take(0, V);
        if (!p) panels.take(1, W);
        for (i64 r = lo; r < hi; r += kPanelRows) {
            const int nr = (int)min64(kPanelRows, hi - r);
            panels.open(X, r, nr);
            panels.scores(0, nr, Q);
            if (p) {
                read_planes(p, stride, r, nr);
            } else {
                panels.scores(1, nr, P);
                softmax(nr);
            }
            weigh(r, nr);
            for (int i = 0; i < nr; ++i)
                for (i64 c = 0; c < k; ++c) totals[c] += (double)Q[i * K + c];
            panels.add(Q, nr);
        }
        panels.close(out);
    }
};

// If p is null, probabilities are computed at W. Scratch: panel_scratch(d, k) + kPanelRows * panel_columns(k).
template <class T>
void softmax_product(const DenseRows<T>& X, i64 lo, i64 hi, const Classes& y, const double* p, i64 stride,
                     const double* W, const double* V, bool single, double* out, double* scratch) {
    if (single)
        PackedProduct<float, T>(X, y, scratch).run(lo, hi, p, stride, W, V, out);
    else
        PackedProduct<double, T>(X, y, scratch).run(lo, hi, p, stride, W, V, out);
}
template <class T>
void softmax_product(const CsrRows<T>& X, i64 lo, i64 hi, const Classes& y, const double* p, i64 stride, const double*,
                     const double* V, bool, double* out, double* scratch) {
    softmax_hess_vec(X, lo, hi, y, p, stride, V, out, scratch);
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
