// Many models on the same rows: the grid of C and folds, one read of X for all of them.
//
// Every row belongs to one part of the data (a fold) or to none (-1). Model q is trained on the rows outside its part
// part_of[q]; on the rows inside it only its scores are wanted. All models of a grid are near a few base points, so
// model q is theta_q = base + step_q, and its dual point the Newton-dual one of that base and step (closing.hpp).
#pragma once
#include "closing.hpp"
#include "softmax.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

// G (d, k) += sum over the listed rows of x a'. J features by V vectors of models in registers over the rows.
template <int J, int V, class T>
void outer_list(const DenseRows<T>& X, i64 r, const int* list, int count, i64 j, const double* A, i64 k, i64 c,
                double* G) {
    vd acc[J][V] = {};
    for (int i = 0; i < count; ++i) {
        const T* p = X.row(r + list[i]) + j;
        vd av[V];
        for (int v = 0; v < V; ++v) av[v] = load(A + list[i] * k + c + v * VL);
        for (int q = 0; q < J; ++q) {
            const vd s = splat((double)p[q]);
            for (int v = 0; v < V; ++v) acc[q][v] += s * av[v];
        }
    }
    for (int q = 0; q < J; ++q)
        for (int v = 0; v < V; ++v) {
            double* g = G + (j + q) * k + c + v * VL;
            store(g, load(g) + acc[q][v]);
        }
}
template <class T>
void add_list(const DenseRows<T>& X, i64 r, const int* list, int count, const double* A, i64 k, double* G) {
    for (i64 c = 0; c < k;) {
        const bool wide = c + 2 * VL <= k;
        i64 j = 0;
        for (; j + 6 <= X.d; j += 6)
            wide ? outer_list<6, 2>(X, r, list, count, j, A, k, c, G)
                 : outer_list<6, 1>(X, r, list, count, j, A, k, c, G);
        for (; j < X.d; ++j)
            wide ? outer_list<1, 2>(X, r, list, count, j, A, k, c, G)
                 : outer_list<1, 1>(X, r, list, count, j, A, k, c, G);
        c += wide ? 2 * VL : VL;
    }
}
template <class T, class I>
void add_list(const CsrRows<T, I>& X, i64 r, const int* list, int count, const double* A, i64 k, double* G) {
    for (int i = 0; i < count; ++i) X.add_k(r + list[i], 1, A + list[i] * k, k, G);
}

// Sums of each part, at one point: loss, gradient by (w, b); out is (parts + 1, d + 2), rows of no part come first.
// curvature gets s l''(m) of every row.
template <class R>
void part_sweep(const R& X, i64 lo, i64 hi, const Targets& t, LossSpec spec, const i64* part, i64 parts,
                const double* theta, double* out, double* curvature) {
    const LossOps loss = ops(spec.id);
    Chunk c;
    int list[kRoom];
    double a[kRoom];
    for (i64 r = lo; r < hi; r += X.chunk()) {
        const int nr = (int)min64(X.chunk(), hi - r), np = padded(nr);
        X.dots(r, nr, theta, theta[X.d], c.m);
        margins(c, t, r, nr);
        loss.at(np, spec.width, c.m, c.value, c.slope, c.curvature);
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
        }
    }
}

// The Gram of each part (gram.hpp): out is (parts + 1) triangles, rows of no part first.
template <class R>
void part_gram(const R& X, i64 lo, i64 hi, const i64* part, i64 parts, const double* h, const double* mu, double* out,
               double* scratch) {
    const i64 order = X.d + 1;
    const int rows = gram_rows(X.d);
    double* mine = scratch;
    double* pack = scratch + rows;
    for (i64 r = lo; r < hi; r += rows) {
        const int nr = (int)min64(rows, hi - r);
        const R here = from_row(X, r);
        for (i64 f = 0; f <= parts; ++f) {
            int count = 0;
            for (int i = 0; i < nr; ++i) {
                const bool inside = part[r + i] + 1 == f;
                mine[i] = inside ? h[r + i] : 0.0;
                count += inside;
            }
            if (count) gram(here, 0, nr, mine, mu, out + f * order * order, pack);
        }
    }
}

// Room for a chunk: scores (rows, columns) as rows.hpp gives them, and planes of rows, one per base or model.
struct GridRoom {
    double *rowwise, *z0, *slope, *curve, *dz;
    double sign[kGridRows], offset[kGridRows], weight[kGridRows], norm[kGridRows];
    i64 part[kGridRows];

    GridRoom(const GridJob& job, double* scratch) {
        rowwise = scratch;
        z0 = rowwise + kGridRows * (job.padded_bases > job.padded_models ? job.padded_bases : job.padded_models);
        slope = z0 + kGridRows * job.padded_bases;
        curve = slope + kGridRows * job.padded_bases;
        dz = curve + kGridRows * job.padded_bases;
    }
    // Padding rows have weight 0, and no part.
    template <class R>
    void open(const R& X, const Targets& t, const i64* parts, i64 r, int nr) {
        for (int i = 0; i < kGridRows; ++i) {
            const bool real = i < nr;
            sign[i] = real ? t.sign[r + i] : 1.0;
            offset[i] = real && t.offset ? t.offset[r + i] : 0.0;
            weight[i] = real ? (t.weight ? t.weight[r + i] : 1.0) : 0.0;
            norm[i] = real ? __builtin_sqrt(X.norm2(r + i)) : 0.0;
            part[i] = real ? parts[r + i] : -1;
        }
    }
    // rowwise (nr, K) -> planes (K, kGridRows); padding rows are 0
    void to_planes(int nr, i64 K, double* planes) const {
        for (i64 q = 0; q < K; q += 8)
            for (int i = 0; i < nr; ++i)
                for (int v = 0; v < 8; ++v) planes[(q + v) * kGridRows + i] = rowwise[i * K + q + v];
        for (i64 q = 0; q < K; ++q)
            for (int i = nr; i < kGridRows; ++i) planes[q * kGridRows + i] = 0.0;
    }
    void to_rows(int nr, i64 K, const double* planes) const {
        for (i64 q = 0; q < K; q += 8)
            for (int i = 0; i < nr; ++i)
                for (int v = 0; v < 8; ++v) rowwise[i * K + q + v] = planes[(q + v) * kGridRows + i];
    }
};

// One model on one chunk: its header sums; its plane of score changes becomes its masses s sign u.
inline void grid_model(const GridJob& job, const GridRoom& room, ClosingChunk& c, const LossOps& loss, double width,
                       i64 q, i64 r, int nr, double* out) {
    const i64 at = job.base_of[q], mine = job.part_of[q];
    const double *z0 = room.z0 + at * kGridRows, *slope0 = room.slope + at * kGridRows,
                 *curve0 = room.curve + at * kGridRows;
    double* dz = room.dz + q * kGridRows;
    double* s = c.a[0];  // weights, 0 on the rows held out
    const int np = padded(nr);
    for (int i = 0; i < np; ++i) s[i] = mine >= 0 && room.part[i] == mine ? 0.0 : room.weight[i];
    if (mine >= 0 && job.held)
        for (int i = 0; i < nr; ++i)
            if (room.part[i] == mine) job.held[(r + i) * job.slots + job.slot_of[q]] = z0[i] + dz[i];
    for (int i = 0; i < np; i += VL) {
        const vd sign = load(room.sign + i), step = load(dz + i);
        store(c.m1 + i, sign * (load(z0 + i) + step) + load(room.offset + i));
        const vd u = -(load(slope0 + i) + load(curve0 + i) * sign * step);
        store(c.u + i, select(load(s + i) != 0.0, u, vd{}));
    }
    loss.at(np, width, c.m1, c.value1, c.slope1, c.curve1);
    loss.conjugate(np, width, c.u, c.conj, c.inside);
    int outside = 0;
    for (int i = 0; i < nr; ++i)
        if (s[i] != 0.0 && (c.inside[i] == 0.0 || !(c.conj[i] - c.conj[i] == 0.0))) {
            c.u[i] = -c.slope1[i];
            ++outside;
        }
    if (outside) loss.conjugate(np, width, c.u, c.conj, c.inside);
    vd loss_sum{}, conj[2] = {}, size[2] = {}, magnitude{}, absolute{};
    const double reach = job.reach[2 * q], reach_b = job.reach[2 * q + 1];
    for (int i = 0; i < np; i += VL) {
        const vd weight = load(s + i), u = load(c.u + i), value = weight * load(c.value1 + i);
        const vd mass = weight * load(room.sign + i) * u, shift = u * load(room.offset + i), own = load(c.conj + i);
        const vd term = weight * (own + shift), large = vabs(mass);
        const auto negative = mass < 0.0;
        conj[0] += select(negative, vd{}, term);
        conj[1] += select(negative, term, vd{});
        size[0] += select(negative, vd{}, large);
        size[1] += select(negative, large, vd{});
        magnitude += large * (load(room.norm + i) * reach + reach_b);
        absolute += value + weight * (vabs(own) + vabs(shift));
        loss_sum += value;
        store(dz + i, mass);
    }
    const double header[8] = {total(loss_sum), total(conj[0]),   total(conj[1]),  total(size[0]),
                              total(size[1]),  total(magnitude), total(absolute), (double)outside};
    for (int v = 0; v < 8; ++v) out[v * job.padded_models + q] += header[v];
}

// The closing pass of all models. out: the header of closing.hpp (8, K), v+ (d, K), v- (d, K), K = padded_models.
template <class R>
void grid_closing(const R& X, i64 lo, i64 hi, const Targets& t, LossSpec spec, const GridJob& job, double* out,
                  double* scratch) {
    const LossOps loss = ops(spec.id);
    const bool one_sided = spec.id != LossId::squared && spec.id != LossId::huber && spec.id != LossId::absolute;
    const i64 K = job.padded_models, Kb = job.padded_bases;
    GridRoom room(job, scratch);
    ClosingChunk c;
    double* plus = out + 8 * K;
    double* minus = plus + X.d * K;
    const int most = X.chunk() < kGridRows ? X.chunk() : kGridRows;
    for (i64 r = lo; r < hi; r += most) {
        const int nr = (int)min64(most, hi - r), np = padded(nr);
        room.open(X, t, job.part, r, nr);
        X.dots_k(r, nr, job.bases_at, Kb, room.rowwise);
        room.to_planes(nr, Kb, room.z0);
        X.dots_k(r, nr, job.steps, K, room.rowwise);
        room.to_planes(nr, K, room.dz);
        for (i64 b = 0; b < job.bases; ++b) {
            for (int i = 0; i < np; ++i) c.m0[i] = room.sign[i] * room.z0[b * kGridRows + i] + room.offset[i];
            loss.at(np, spec.width, c.m0, c.value0, room.slope + b * kGridRows, room.curve + b * kGridRows);
        }
        for (i64 q = 0; q < job.models; ++q) grid_model(job, room, c, loss, spec.width, q, r, nr, out);
        room.to_rows(nr, K, room.dz);
        int count[2] = {0, 0};
        if (one_sided) {  // u >= 0: the side of a row is its sign
            for (int i = 0; i < nr; ++i) {
                const int side = room.sign[i] < 0.0;
                c.list[side][count[side]++] = i;
            }
            add_list(X, r, c.list[0], count[0], room.rowwise, K, plus);
            add_list(X, r, c.list[1], count[1], room.rowwise, K, minus);
            continue;
        }
        for (int i = 0; i < nr; ++i) c.list[0][i] = i;
        for (i64 i = 0; i < nr * K; ++i) {
            room.dz[i] = room.rowwise[i] < 0.0 ? room.rowwise[i] : 0.0;
            room.rowwise[i] = room.rowwise[i] < 0.0 ? 0.0 : room.rowwise[i];
        }
        add_list(X, r, c.list[0], nr, room.rowwise, K, plus);
        add_list(X, r, c.list[0], nr, room.dz, K, minus);
    }
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
