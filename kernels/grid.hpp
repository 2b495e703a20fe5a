// Many models on the same rows: the grid of C and folds, one read of X for all of them.
//
// Every row belongs to one part of the data (a fold) or to none (-1). Model q is trained on the rows outside its part
// part_of[q]; on the rows inside it only its scores are wanted. All models of a grid are near a few base points, so
// model q is theta_q = base + step_q, and its dual point the Newton-dual one of that base and step (closing.hpp).
#pragma once
#include <type_traits>

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

// The Gram of each part (gram.hpp): out is (parts + 1) triangles, rows of no part first. Part by part over all rows, so
// that each fills its panels; a row is read for its own part only. scratch: hi - lo doubles more than gram needs.
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

// Room for a chunk: scores (rows, columns) as rows.hpp gives them, and planes of rows, one per base or model.
struct GridRoom {
    double *rowwise, *z0, *value, *slope, *curve, *dz, *sums;
    double sign[kGridRows], offset[kGridRows], weight[kGridRows], norm[kGridRows];
    i64 part[kGridRows], only;  // the part of all rows of the chunk, if there is one

    GridRoom(const GridJob& job, double* scratch) {
        rowwise = scratch;
        z0 = rowwise + kGridRows * (job.padded_bases > job.padded_models ? job.padded_bases : job.padded_models);
        value = z0 + kGridRows * job.padded_bases;
        slope = value + kGridRows * job.padded_bases;
        curve = slope + kGridRows * job.padded_bases;
        dz = curve + kGridRows * job.padded_bases;
        sums = dz + kGridRows * job.padded_models;
        for (i64 v = 0; v < kGridSums * VL * job.models; ++v) sums[v] = 0.0;
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
        only = part[0];
        for (int i = 1; i < nr; ++i) only = part[i] == only ? only : -1;
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

// What a model makes of VL rows: its loss, its dual numbers and their conjugates.
struct Closed {
    vd value, u, conj;
};

// By the functions of the loss; rows whose u leaves the domain take the slope at the model itself.
template <class L>
inline Closed closed_at(vd m1, vd u, vd weight, double width, double& outside) {
    const Point p = L::at(m1, width);
    u = select(weight != 0.0, u, vd{});
    Conjugate c = L::conjugate(u, width);
    const vi bad = ~(c.inside & (c.value - c.value == 0.0)) & (weight != 0.0);
    if (any(bad)) {
        u = select(bad, -p.slope, u);
        c = L::conjugate(u, width);
        outside += total(select(bad, splat(1.0), vd{}));
    }
    return {p.value, u, c.value};
}

// log(1 + x) given 1/(2 + x): odd series of s = x/(2 + x), to s^13 for |x| <= e^(1/8) - 1, to s^7 for |x| <= e^(1/64) - 1.
template <bool Nearer>
inline vd log1p_near(vd x, vd inverse) {
    const vd s = x * inverse, q = s * s;
    vd p = splat(2.0 / 7.0);
    if constexpr (!Nearer) {
        p = splat(2.0 / 13.0);
        p = p * q + 2.0 / 11.0;
        p = p * q + 2.0 / 9.0;
        p = p * q + 2.0 / 7.0;
    }
    p = p * q + 2.0 / 5.0;
    p = p * q + 2.0 / 3.0;
    return s * (p * q + 2.0);
}

// The logistic loss within 1/8 of a base with margin m0, loss l0, p0 = -l'(m0) and h0 = p0 (1 - p0): with t = m1 - m0,
//   l(m1) = l0 + log(1 + p0 (e^-t - 1)),      u = p0 - h0 t = p0 (1 - (1 - p0) t),      1 - u = (1 - p0)(1 + p0 t),
//   l*(-u) = u log u + (1 - u) log(1 - u) = -l0 - u m0 + u log(1 - (1 - p0) t) + (1 - u) log(1 + p0 t).
// Short series and one division for all three, shorter ones within 1/64; u is always inside the domain.
constexpr double kNear = 0.125, kNearer = 1.0 / 64.0;
template <bool Nearer>
inline Closed closed_near(vd m0, vd l0, vd p0, vd u, vd t) {
    const vd y = -t;
    vd e = splat(1.0 / 5040.0);  // (e^y - 1)/y, error below y^10/11!, nearer below y^7/8!
    if constexpr (!Nearer) {
        e = splat(1.0 / 3628800.0);
        e = e * y + 1.0 / 362880.0;
        e = e * y + 1.0 / 40320.0;
        e = e * y + 1.0 / 5040.0;
    }
    e = e * y + 1.0 / 720.0;
    e = e * y + 1.0 / 120.0;
    e = e * y + 1.0 / 24.0;
    e = e * y + 1.0 / 6.0;
    e = e * y + 0.5;
    e = e * y + 1.0;
    const vd x = p0 * (e * y), a = (1.0 - p0) * y, b = p0 * t;
    const vd dx = 2.0 + x, da = 2.0 + a, db = 2.0 + b, ab = da * db;
    const vd inverse = 1.0 / (ab * dx), rest = inverse * dx;
    const vd loga = log1p_near<Nearer>(a, rest * db), logb = log1p_near<Nearer>(b, rest * da);
    return {l0 + log1p_near<Nearer>(x, inverse * ab), u, (u * loga - u * m0) + ((1.0 - u) * logb - l0)};
}

// One model on one chunk: adds to its kGridSums vectors of sums; its plane of score changes becomes its masses s sign u.
template <class L>
void grid_model(const GridJob& job, const GridRoom& room, double width, i64 q, i64 r, int nr) {
    constexpr bool logistic = std::is_same_v<L, Logistic>;
    const i64 at = job.base_of[q] * kGridRows, mine = job.part_of[q];
    double* dz = room.dz + q * kGridRows;
    const int np = padded(nr);
    if (mine >= 0 && job.held)
        for (int i = 0; i < nr; ++i)
            if (room.part[i] == mine) job.held[(r + i) * job.slots + job.slot_of[q]] = room.z0[at + i] + dz[i];
    if (mine >= 0 && room.only == mine) {  // nothing here that the model was trained on
        for (int i = 0; i < np; ++i) dz[i] = 0.0;
        return;
    }
    double* sums = room.sums + q * kGridSums * VL;
    vd loss = load(sums), conj[2] = {load(sums + VL), load(sums + 2 * VL)},
       size[2] = {load(sums + 3 * VL), load(sums + 4 * VL)}, reach = load(sums + 5 * VL),
       absolute = load(sums + 6 * VL);
    double outside = 0.0;
    const vi held_out = mine - vi{};
    for (int i = 0; i < np; i += VL) {
        vi part;
        std::memcpy(&part, room.part + i, sizeof part);
        const vd all = load(room.weight + i);
        const vd weight = mine >= 0 ? select(part == held_out, vd{}, all) : all;
        const vd sign = load(room.sign + i), offset = load(room.offset + i), t = sign * load(dz + i);
        const vd m0 = sign * load(room.z0 + at + i) + offset;
        const vd slope0 = load(room.slope + at + i), u0 = -(slope0 + load(room.curve + at + i) * t);
        Closed c;
        const vd far = vabs(t);
        if (logistic && !any(~(far <= kNearer)))
            c = closed_near<true>(m0, load(room.value + at + i), -slope0, u0, t);
        else if (logistic && !any(~(far <= kNear)))
            c = closed_near<false>(m0, load(room.value + at + i), -slope0, u0, t);
        else
            c = closed_at<L>(m0 + t, u0, weight, width, outside);
        const vd value = weight * c.value, mass = weight * sign * c.u, shift = c.u * offset;
        const vd term = weight * (c.conj + shift), large = vabs(mass);
        const vi negative = mass < 0.0;
        const vd minus = select(negative, term, vd{}), below = select(negative, large, vd{});
        loss += value;
        conj[0] += term - minus;
        conj[1] += minus;
        size[0] += large - below;
        size[1] += below;
        reach += large * load(room.norm + i);
        absolute += value + weight * (vabs(c.conj) + vabs(shift));
        store(dz + i, mass);
    }
    const vd after[kGridSums - 1] = {loss, conj[0], conj[1], size[0], size[1], reach, absolute};
    for (int v = 0; v < kGridSums - 1; ++v) store(sums + v * VL, after[v]);
    sums[7 * VL] += outside;
}

using GridModel = void (*)(const GridJob&, const GridRoom&, double, i64, i64, int);
inline GridModel grid_model_of(LossId id) {
    switch (id) {
        case LossId::logistic:
            return grid_model<Logistic>;
        case LossId::exponential:
            return grid_model<Exponential>;
        case LossId::squared:
            return grid_model<Squared>;
        case LossId::squared_hinge:
            return grid_model<SquaredHinge>;
        case LossId::huberised_hinge:
            return grid_model<HuberisedHinge>;
        case LossId::huber:
            return grid_model<Huber>;
        case LossId::hinge:
            return grid_model<Hinge>;
        case LossId::absolute:
            return grid_model<Absolute>;
        default:
            return grid_model<PerceptronLoss>;
    }
}

// The header of closing.hpp for every model, from its vectors of sums. magnitude: |x|.|w| + |b| <= |x| reach + reach_b.
inline void grid_headers(const GridJob& job, const GridRoom& room, double* out) {
    for (i64 q = 0; q < job.models; ++q) {
        double header[kGridSums];
        for (int v = 0; v < kGridSums; ++v) header[v] = total(load(room.sums + (q * kGridSums + v) * VL));
        header[5] = header[5] * job.reach[2 * q] + (header[3] + header[4]) * job.reach[2 * q + 1];
        for (int v = 0; v < kGridSums; ++v) out[v * job.padded_models + q] += header[v];
    }
}

// The closing pass of all models. out: the header of closing.hpp (8, K), v+ (d, K), v- (d, K), K = padded_models.
template <class R>
void grid_closing(const R& X, i64 lo, i64 hi, const Targets& t, LossSpec spec, const GridJob& job, double* out,
                  double* scratch) {
    const LossOps loss = ops(spec.id);
    const bool one_sided = spec.id != LossId::squared && spec.id != LossId::huber && spec.id != LossId::absolute;
    const i64 K = job.padded_models, Kb = job.padded_bases;
    const GridModel model = grid_model_of(spec.id);
    i64 bases = 0;  // that are named: the others are padding
    for (i64 q = 0; q < job.models; ++q) bases = job.base_of[q] < bases ? bases : job.base_of[q] + 1;
    GridRoom room(job, scratch);
    double m0[kGridRows];
    int list[2][kGridRows];
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
        for (i64 b = 0; b < bases; ++b) {
            const i64 at = b * kGridRows;
            for (int i = 0; i < np; ++i) m0[i] = room.sign[i] * room.z0[at + i] + room.offset[i];
            loss.at(np, spec.width, m0, room.value + at, room.slope + at, room.curve + at);
        }
        for (i64 q = 0; q < job.models; ++q) model(job, room, spec.width, q, r, nr);
        room.to_rows(nr, K, room.dz);
        int count[2] = {0, 0};
        if (one_sided) {  // u >= 0: the side of a row is its sign
            for (int i = 0; i < nr; ++i) {
                const int side = room.sign[i] < 0.0;
                list[side][count[side]++] = i;
            }
            add_list(X, r, list[0], count[0], room.rowwise, K, plus);
            add_list(X, r, list[1], count[1], room.rowwise, K, minus);
            continue;
        }
        for (int i = 0; i < nr; ++i) list[0][i] = i;
        for (i64 i = 0; i < nr * K; ++i) {
            room.dz[i] = room.rowwise[i] < 0.0 ? room.rowwise[i] : 0.0;
            room.rowwise[i] = room.rowwise[i] < 0.0 ? 0.0 : room.rowwise[i];
        }
        add_list(X, r, list[0], nr, room.rowwise, K, plus);
        add_list(X, r, list[0], nr, room.dz, K, minus);
    }
    grid_headers(job, room, out);
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
