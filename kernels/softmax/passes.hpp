// Passes of the softmax loss, which couples k classes:  l_i = logsumexp(z_i) - z_{i,y_i},  z_i = W'(x_i, 1).
//
// Coefficients and gradients have K = padded_classes(k) columns; the padding is 0. A chunk is stored in planes, one per
// class with a number for each row (softmax/class_products.hpp), so that vectors of exp and log run along rows, no lane
// is wasted on padding, and no sum runs across lanes.
//
// Quantities of a row that sum to zero over the classes are defined by their entries off the label: 1 - p_y is the sum
// of the other p_c, which keeps full relative accuracy where p_y is near 1, as for most rows of a good fit.
#pragma once
#include "core/cholesky.hpp"
#include "core/gram.hpp"
#include "softmax/class_products.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

// log(1 + x), x >= 0.
inline vd vlog1p(vd x) { return select(x < 0.4, twice_atanh(x / (2.0 + x)), vlog(1.0 + x)); }
// -(1 - r) log(1 - r), 0 <= r <= 1.
inline vd entropy_of_rest(vd r) { return (1.0 - r) * select(r < 0.29, twice_atanh(r / (2.0 - r)), -vlog(1.0 - r)); }

// Rows of a chunk.
template <class R>
int softmax_step(const R& X, i64 k) {
    const int plane_rows = softmax_rows(R::dense, X.d, k);
    return softmax_packed(R::dense, X.d, k) ? plane_rows : (int)min64(X.chunk(), plane_rows);
}

// A chunk of rows in planes (k, plane_rows). close() adds the sums of add() to G (d + 1, K), if given. Products with
// packed panels are in precision E.
template <class R, class E = double>
struct SoftmaxChunk {
    const R& X;
    Classes y;
    i64 K;
    int plane_rows;  // rows in a plane
    double* planes;  // scratch
    double* G;
    ByClass<R, E> products;
    i64 first = 0;
    int nr = 0, np = 0;
    i64 label[kMaxChunk];  // -1 for padding rows
    double weight[kMaxChunk], loss[kMaxChunk], rest[kMaxChunk], margin[kMaxChunk];
    double own[kMaxChunk];  // score of the label; after softmax(), its probability

    SoftmaxChunk(const R& rows, const Classes& classes, double* sums, double* scratch)
        : X(rows),
          y(classes),
          K(padded_classes(classes.k)),
          plane_rows(softmax_rows(R::dense, rows.d, classes.k)),
          planes(scratch),
          G(sums),
          products(rows, classes.k, sums, scratch + 3 * classes.k * plane_rows) {}

    // Plane of class c in set 0, 1 or 2; softmax_scratch holds three sets.
    double* plane(int which, i64 c) const { return planes + (which * y.k + c) * plane_rows; }
    double& at_label(int which, int i) const { return plane(which, label[i])[i]; }

    void open(i64 r, int rows) {
        first = r;
        nr = rows;
        np = padded(rows);
        for (int i = 0; i < nr; ++i) weight[i] = y.weight ? y.weight[r + i] : 1.0, label[i] = y.label[r + i];
        for (int i = nr; i < np; ++i) weight[i] = own[i] = 0.0, label[i] = -1;
    }
    // Mask of the rows i, i + 1, .. of class c.
    vi of_class(int i, i64 c) const {
        vi v;
        std::memcpy(&v, label + i, sizeof v);
        return v == c;
    }
    // Entries of a, indexed by row of the block, for rows i, i + 1, .. of the chunk; 0 after its end.
    vd by_row(const double* a, int i) const {
        return i + VL <= nr ? load(a + first + i) : load_first(a + first + i, nr - i);
    }
    // Turn the scores in the planes into probabilities; fill own, loss, rest = 1 - p_y and margin.
    void softmax(int which) {
        double* z = plane(which, 0);
        for (int i = 0; i < nr; ++i) {
            own[i] = at_label(which, i);
            at_label(which, i) = -1e300;
        }
        for (int i = 0; i < np; i += VL) {
            const vd mine = load(own + i);
            vd rival = load(z + i);
            for (i64 c = 1; c < y.k; ++c) rival = vmax(rival, load(z + c * plane_rows + i));
            const vd top = vmax(rival, mine);
            vd others{};
            for (i64 c = 0; c < y.k; ++c) {
                const vd e = vexp(load(z + c * plane_rows + i) - top);
                store(z + c * plane_rows + i, e);
                others += e;
            }
            const vd e = vexp(mine - top), sum = others + e, inverse = 1.0 / sum;
            for (i64 c = 0; c < y.k; ++c) store(z + c * plane_rows + i, load(z + c * plane_rows + i) * inverse);
            // if top = mine, then e = 1, and sum - 1 is `others` without cancellation
            store(loss + i, (top - mine) + vlog1p(select(e == 1.0, others, sum - 1.0)));
            store(rest + i, others * inverse);
            store(margin + i, mine - rival);
            store(own + i, e * inverse);
        }
        for (int i = 0; i < nr; ++i) at_label(which, i) = own[i];
    }

    // Multiply the planes by s, and set the entry of the label to minus the sum of the others.
    void weigh_zero_sum(int which) const {
        for (int i = 0; i < np; i += VL) {
            const vd s = load(weight + i);
            vd sum{};
            for (i64 c = 0; c < y.k; ++c) sum += put(which, c, i, load(plane(which, c) + i) * s);
            put_at_label(which, i, -sum);
        }
    }
    // Store v in plane c, with 0 at the label; return the stored vector.
    vd put(int which, i64 c, int i, vd v) const {
        v = select(of_class(i, c), vd{}, v);
        store(plane(which, c) + i, v);
        return v;
    }
    void put_at_label(int which, int i, vd v) const {
        for (int q = 0; q < VL && i + q < nr; ++q) at_label(which, i + q) = v[q];
    }
    // out[c] += sum of plane c
    void add_totals(int which, double* out) const {
        for (i64 c = 0; c < y.k; ++c) {
            const double* a = plane(which, c);
            vd sum{};
            for (int i = 0; i < np; i += VL) sum += load(a + i);
            out[c] += total(sum);
        }
    }
    double weighted_total(const double* a) const {
        vd sum{};
        for (int i = 0; i < np; i += VL) sum += load(a + i) * load(weight + i);
        return total(sum);
    }
    // G += sum (x, 1) a', with a the planes
    void add(int which) const {
        add_totals(which, G + X.d * K);
        products.add(first, nr, plane(which, 0), plane_rows);
    }
    void close() const { products.close(); }
    // Planes `which` = scores by the W in slot `of`
    void scores(int of, int which) const { products.scores(of, first, nr, plane(which, 0), plane_rows); }
    int step() const { return softmax_step(X, y.k); }
};

// Sums of s p p' over chunks in planes, in single precision.
struct CrossMoments {
    Panels<float> panels;

    CrossMoments(i64 k, double* scratch) : panels(k, k, scratch) {
        for (i64 j = 0; j < kPanelHeight * panels.stride; ++j) panels.x[j] = 0.0f;
        panels.clear();
    }
    void add(const double* p, i64 plane_rows, const double* weight, int nr) {
        panels.open_planes(p, plane_rows, nr);
        for (i64 c = 0; c < panels.k; ++c)
            for (int i = 0; i < nr; ++i) panels.Z[i * panels.K + c] = (float)(p[c * plane_rows + i] * weight[i]);
        panels.add(panels.Z, nr, true);
    }
    // out (k, padded_classes) += sum s p p'
    void close(double* out) const {
        const i64 to = padded_classes(panels.k);
        for (i64 a = 0; a < panels.k; ++a)
            for (i64 b = 0; b <= a; ++b) {
                const double sum = panels.sum(a, b);
                out[a * to + b] += sum;
                if (a != b) out[b * to + a] += sum;
            }
    }
};

// The sweep at W = 0, where every probability is 1/k and the gradient follows from the sum of the rows of each class.
template <class R>
void sweep_at_zero(const R& X, i64 lo, i64 hi, const Classes& y, double* out, double* p, i64 stride, double* cross,
                   double* scratch) {
    const i64 K = padded_classes(y.k);
    double *G = out + 3, *sums = scratch, *mass = scratch + y.k * X.d, all = 0.0;
    for (i64 j = 0; j < y.k * (X.d + 1); ++j) scratch[j] = 0.0;
    for (i64 r = lo; r < hi; ++r) {
        const double s = y.weight ? y.weight[r] : 1.0;
        if (s != 0.0) X.axpy(r, s, sums + y.label[r] * X.d);
        mass[y.label[r]] += s;
        out[1] += s > 0.0;
    }
    for (i64 c = 0; c < y.k; ++c) all += mass[c];
    const double share = 1.0 / (double)y.k;
    for (i64 j = 0; j <= X.d; ++j) {
        const double* at = j < X.d ? sums + j : mass;
        const i64 next = j < X.d ? X.d : 1;
        double total = 0.0;
        for (i64 c = 0; c < y.k; ++c) total += at[c * next];
        for (i64 c = 0; c < y.k; ++c) G[j * K + c] += share * total - at[c * next];
    }
    out[0] += all * __builtin_log((double)y.k);
    for (i64 c = 0; p && c < y.k; ++c)
        for (i64 r = lo; r < hi; ++r) p[c * stride + r] = share;
    for (i64 a = 0; cross && a < y.k; ++a)
        for (i64 b = 0; b < y.k; ++b) cross[a * K + b] += all * share * share;
}

template <class E, class R>
void sweep_in(const R& X, i64 lo, i64 hi, const Classes& y, const double* W, double* out, double* p, i64 stride,
              double* cross, double* scratch) {
    SoftmaxChunk<R, E> c(X, y, out + 3, scratch);
    std::optional<CrossMoments> moments;
    if (cross) moments.emplace(y.k, scratch + softmax_scratch(R::dense, X.d, y.k));
    c.products.take(0, W);
    for (i64 r = lo; r < hi; r += c.step()) {
        c.open(r, (int)min64(c.step(), hi - r));
        c.scores(0, 0);
        c.softmax(0);
        out[0] += c.weighted_total(c.loss);
        for (int i = 0; i < c.nr; ++i) {
            out[1] += c.weight[i] > 0.0 && !(c.margin[i] > 0.0);
            out[2] += c.weight[i] > 0.0 && !(c.margin[i] >= 0.0);
        }
        if (p)
            for (i64 q = 0; q < y.k; ++q)
                for (int i = 0; i < c.nr; ++i) p[q * stride + r + i] = c.plane(0, q)[i];
        if (moments) moments->add(c.plane(0, 0), c.plane_rows, c.weight, c.nr);
        c.weigh_zero_sum(0);
        c.add(0);
    }
    c.close();
    if (moments) moments->close(cross);
}

// out: loss, rows (of positive weight) with margin <= 0, rows with margin < 0, gradient (d + 1, K);
// margin = z_y - max of the others. p (may be null) gets the probabilities of class c at p + c * stride, by row.
// cross (may be null): (K, K) += sum s p p', in single precision; scratch then needs panel_scratch(k, k) more numbers.
// `single`: products with packed panels are in single precision.
template <class R>
void softmax_sweep(const R& X, i64 lo, i64 hi, const Classes& y, const double* W, bool single, double* out, double* p,
                   i64 stride, double* cross, double* scratch) {
    const bool packed = softmax_packed(R::dense, X.d, y.k);
    bool zero = packed;
    for (i64 j = 0; zero && j < (X.d + 1) * padded_classes(y.k); ++j) zero = W[j] == 0.0;
    if (zero)
        sweep_at_zero(X, lo, hi, y, out, p, stride, cross, scratch);
    else if (packed && single)
        sweep_in<float>(X, lo, hi, y, W, out, p, stride, cross, scratch);
    else
        sweep_in<double>(X, lo, hi, y, W, out, p, stride, cross, scratch);
}

// out (d + 1, K) += sum s (x, 1) ((diag p - p p') V'(x, 1))'
template <class R>
void softmax_hess_vec(const R& X, i64 lo, i64 hi, const Classes& y, const double* p, i64 stride, const double* V,
                      double* out, double* scratch) {
    SoftmaxChunk c(X, y, out, scratch);
    c.products.take(0, V);
    for (i64 r = lo; r < hi; r += c.step()) {
        c.open(r, (int)min64(c.step(), hi - r));
        c.scores(0, 0);
        for (int i = 0; i < c.np; i += VL) {
            vd q{}, sum{};
            for (i64 a = 0; a < y.k; ++a) q += c.by_row(p + a * stride, i) * load(c.plane(0, a) + i);
            const vd s = load(c.weight + i);
            for (i64 a = 0; a < y.k; ++a)
                sum += c.put(0, a, i, c.by_row(p + a * stride, i) * (load(c.plane(0, a) + i) - q) * s);
            c.put_at_label(0, i, -sum);
        }
        c.add(0);
    }
    c.close();
}

// out[2 t] += loss at W + step_t D, out[2 t + 1] += its derivative with respect to step_t
template <class R>
void softmax_ray(const R& X, i64 lo, i64 hi, const Classes& y, const double* W, const double* D, const double* steps,
                 i64 n_steps, double* out, double* scratch) {
    SoftmaxChunk c(X, y, nullptr, scratch);
    double own[kMaxChunk], slope[kMaxChunk];
    c.products.take(0, W);
    c.products.take(1, D);
    for (i64 r = lo; r < hi; r += c.step()) {
        c.open(r, (int)min64(c.step(), hi - r));
        c.scores(0, 0);
        c.scores(1, 1);
        for (int i = 0; i < c.nr; ++i) own[i] = c.at_label(1, i);
        for (i64 k = 0; k < n_steps; ++k) {
            for (i64 a = 0; a < y.k; ++a)
                for (int i = 0; i < c.np; ++i) c.plane(2, a)[i] = c.plane(0, a)[i] + steps[k] * c.plane(1, a)[i];
            c.softmax(2);
            for (int i = 0; i < c.np; ++i) slope[i] = 0.0;
            for (i64 a = 0; a < y.k; ++a)
                for (int i = 0; i < c.nr; ++i) slope[i] += c.plane(2, a)[i] * (c.plane(1, a)[i] - own[i]);
            out[2 * k] += c.weighted_total(c.loss);
            out[2 * k + 1] += c.weighted_total(slope);
        }
    }
}

// out (K, K) += sum s p p', with which the equations of the intercepts can be solved exactly.
inline void softmax_cross(i64 lo, i64 hi, const Classes& y, const double* p, i64 stride, double* out, double* scratch) {
    const i64 K = padded_classes(y.k);
    for (i64 r = lo; r < hi; r += kMaxChunk) {
        const i64 nr = min64(kMaxChunk, hi - r);
        for (i64 a = 0; a < y.k; ++a) {
            for (i64 i = 0; i < nr; ++i) scratch[i] = p[a * stride + r + i] * (y.weight ? y.weight[r + i] : 1.0);
            for (i64 b = 0; b <= a; ++b) {
                const double sum = dot_n(scratch, p + b * stride + r, nr);
                out[a * K + b] += sum;
                if (a != b) out[b * K + a] += sum;
            }
        }
    }
}

template <class T>
DenseRows<T> from_row(DenseRows<T> X, i64 r) {
    X.x += r * X.d;
    return X;
}
template <class T>
CsrRows<T> from_row(CsrRows<T> X, i64 r) {
    X.start += r;
    return X;
}

// out: for each pair a <= b of classes, the triangle (see core/gram.hpp) of sum h (x - mu, 1)(x - mu, 1)' with
// h = s p_a (1 - p_a) if a = b, and h = s p_a p_b otherwise (the negative of the Hessian block).
template <class R>
void softmax_hessian(const R& X, i64 lo, i64 hi, const Classes& y, const double* p, i64 stride, const double* mu,
                     double* out, double* scratch) {
    const i64 order = X.d + 1;
    const int rows = gram_rows<double>(X.d);
    double* h = scratch;
    double* pack = scratch + rows;
    for (i64 r = lo; r < hi; r += rows) {
        const int nr = (int)min64(rows, hi - r);
        const R part = from_row(X, r);
        double* block = out;
        for (i64 a = 0; a < y.k; ++a)
            for (i64 b = a; b < y.k; ++b, block += order * order) {
                const double *pa = p + a * stride + r, *pb = p + b * stride + r;
                for (int i = 0; i < nr; ++i)
                    h[i] = (y.weight ? y.weight[r + i] : 1.0) * pa[i] * (a == b ? 1.0 - pa[i] : pb[i]);
                gram(part, 0, nr, h, mu, block, pack);
            }
    }
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
