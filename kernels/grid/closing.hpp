// The closing pass (sums/closing.hpp) of many models at once: a grid of C and folds in one pass over X.
//
// Model q is trained on the rows outside its fold part_of[q]; for the rows inside, only its scores are computed. All
// models of a grid are near a few base points: model q is theta_q = base + step_q, and its dual point is the linearised
// one of that base and step. Rows are processed by fold, and within it by sign, so that all rows of a chunk have the
// same models: one matrix product gives their score changes, another the sums v of their dual points.
#pragma once
#include <type_traits>

#include "core/arena.hpp"
#include "grid/products.hpp"
#include "grid/taylor.hpp"
#include "sums/closing.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

// ---- the rows of a chunk

// Columns of a fold: the models trained on it, the base points, the models it is held out from. Planes hold one number
// for each row of a chunk.
struct GridRoom {
    bool plain = true;             // all steps are 0: a model equals its base, and they share a column
    i64 bases = 0, width;          // number of base points in use; largest number of columns
    i64 active = 0, held = 0, k;   // for this fold: models trained on it, models it is held out from, columns
    i64 *models, *starts, *order;  // active models first, then held; beginnings of the lists of rows; the lists
    double *W, *rowwise, *planes, *base, *G[2], *sums;
    double sign[kGridRows], offset[kGridRows], weight[kGridRows], norm[kGridRows];
    double heavy, longest;  // sum of the weights of the chunk, and its largest norm
    bool light;             // whether a weight is so small that products with it may underflow

    GridRoom(const GridJob& job, i64 d, i64 rows, Arena* arena) : width(job.padded_bases + job.padded_models) {
        for (i64 e = 0; e < (d + 1) * job.padded_models; ++e) plain &= job.steps[e] == 0.0;
        for (i64 q = 0; q < job.models && !plain; ++q) bases = job.base_of[q] < bases ? bases : job.base_of[q] + 1;
        arena->align();
        W = arena->take(d + 1, width);
        rowwise = arena->take(kGridRows, width);
        planes = arena->take(kGridRows, width);
        base = arena->take(bases, kBasePlanes * kGridRows);
        G[0] = arena->take(d, width);
        G[1] = arena->take(d, width);
        sums = arena->take(kGridSums * VL, job.models);
        models = arena->take_ids(job.models);
        starts = arena->take_ids(2 * (job.parts + 1) + 1);
        order = arena->take_ids(rows);
    }
    static i64 padded_to_vectors(i64 n) { return (n + VL - 1) / VL * VL; }
    i64 active_columns() const { return padded_to_vectors(active); }
    double* base_plane(i64 b, int which) const { return base + (b * kBasePlanes + which) * kGridRows; }

    // Sort row indices by fold (rows of no fold first) and, if `by_sign`, by sign.
    void sort_rows(const GridJob& job, const Targets& t, bool by_sign, i64 lo, i64 hi) {
        const i64 lists = 2 * (job.parts + 1);
        auto key = [&](i64 r) {
            const i64 f = job.part[r] >= 0 && job.part[r] < job.parts ? job.part[r] : -1;
            return 2 * (f + 1) + (by_sign && t.sign[r] < 0.0);
        };
        for (i64 f = 0; f <= lists; ++f) starts[f] = 0;
        for (i64 r = lo; r < hi; ++r) ++starts[key(r) + 1];
        for (i64 f = 0; f < lists; ++f) starts[f + 1] += starts[f];
        for (i64 r = lo; r < hi; ++r) order[starts[key(r)]++] = r;
        for (i64 f = lists; f > 0; --f) starts[f] = starts[f - 1];
        starts[0] = 0;
    }
    // Set up the columns of fold f.
    void open_part(const GridJob& job, i64 d, i64 f) {
        active = held = 0;
        for (i64 q = 0; q < job.models; ++q)
            if (f < 0 || job.part_of[q] != f) models[active++] = q;
        for (i64 q = 0; q < job.models; ++q)
            if (f >= 0 && job.part_of[q] == f) models[active + held++] = q;
        k = padded_to_vectors(active + bases + held);
        for (i64 j = 0; j <= d; ++j) {
            double* w = W + j * k;
            const auto step = [&](i64 q) { return job.steps[j * job.padded_models + q]; };
            const auto end = [&](i64 q) { return job.bases_at[j * job.padded_bases + job.base_of[q]] + step(q); };
            for (i64 c = 0; c < active; ++c) w[c] = plain ? end(models[c]) : step(models[c]);
            for (i64 b = 0; b < bases; ++b) w[active + b] = job.bases_at[j * job.padded_bases + b];
            for (i64 h = 0; h < held; ++h) w[active + bases + h] = end(models[active + h]);
            for (i64 c = active + bases + held; c < k; ++c) w[c] = 0.0;
        }
    }
    // Load the rows of a chunk. Padding rows have weight 0, score 0 and sign 1, so they count as correct.
    template <class R>
    void open_rows(const R& X, const Targets& t, const i64* list, int nr) {
        const int np = padded(nr);
        for (int i = 0; i < nr; ++i) {
            const i64 r = list[i];
            sign[i] = t.sign[r];
            offset[i] = t.offset ? t.offset[r] : 0.0;
            weight[i] = t.weight ? t.weight[r] : 1.0;
            norm[i] = X.norm2(r);
        }
        heavy = longest = 0.0;
        light = false;
        for (int i = 0; i < nr; ++i) heavy += weight[i], light |= weight[i] > 0.0 && weight[i] < 0x1p-60;
        for (int i = nr; i < np; ++i) {
            sign[i] = 1.0;
            offset[i] = weight[i] = norm[i] = 0.0;
            for (i64 c = 0; c < k; ++c) rowwise[i * k + c] = 0.0;
        }
        for (int i = 0; i < np; ++i) norm[i] = __builtin_sqrt(norm[i]) + kTinyNorm;
        for (int i = 0; i < nr; ++i) longest = norm[i] > longest ? norm[i] : longest;
        transpose(np, k, rowwise, k, planes, kGridRows);
    }
    // Scores of held-out rows, and the number of rows on the wrong side (a score of 0 counts as positive).
    void judge(const GridJob& job, const i64* list, int nr) {
        const int np = padded(nr);
        for (i64 h = 0; h < held; ++h) {
            const double* z = planes + (active + bases + h) * kGridRows;
            vd wrong{};
            for (int i = 0; i < np; i += VL)
                wrong += select((load(z + i) >= 0.0) ^ (load(sign + i) > 0.0), splat(1.0), vd{});
            double* sum = sums + (models[active + h] * kGridSums + 7) * VL;
            store(sum, load(sum) + wrong);
        }
        if (!job.held) return;
        for (int i = 0; i < nr; ++i)
            for (i64 h = 0; h < held; ++h)
                job.held[list[i] * job.slots + job.slot_of[models[active + h]]] = rowwise[i * k + active + bases + h];
    }
};

// ---- the sums of a model over a chunk

// Bound on the rounding error of the margins of a model: (d + 16) u (|x| reach + reach_b + |offset|).
struct MarginError {
    double share, reach, shift;
    MarginError(const GridJob& job, i64 d, i64 q)
        : share((double)(d + 16) * 0x1p-53), reach(job.reach[2 * q]), shift(job.reach[2 * q + 1] + kTiny) {}
    vd of(vd norm, vd offset) const { return share * (norm * reach + (vabs(offset) + shift)); }
};

// Loss, feasible dual variable and conjugate of rows: an infeasible u is replaced by minus the slope at the model, or
// by 0. `steep` is the larger of |u| and the largest |slope| within the rounding error of the margin.
struct Closed {
    vd value, u, conj, steep;
};
template <class L>
inline Closed closed_at(vd m1, const vd* proposed, vd error, vd weight, Shape shape) {
    const Point p = L::at(m1, shape);
    const auto kept = [&](vd u) { return select((vabs(u) < kTiny) | (vabs(u) * weight < kTiny), vd{}, u); };
    const auto outside = [](const Conjugate& c) { return ~(c.inside & (c.value - c.value == 0.0)); };
    vd u = kept(proposed ? *proposed : -p.slope);
    Conjugate c = L::conjugate(u, shape);
    if (any(outside(c))) {
        u = select(outside(c), kept(-p.slope), u);
        c = L::conjugate(u, shape);
        u = select(outside(c), vd{}, u);
        c = L::conjugate(u, shape);
    }
    return {p.value, u, c.value, vmax(vabs(u), L::steepest(p, m1, error, shape))};
}

// Add to the sums of model number c of the fold; replace its plane of score changes by the masses s sign u.
template <class L, bool plain>
void close_model(const GridJob& job, const GridRoom& room, i64 d, Shape shape, i64 c, int np) {
    const i64 q = room.models[c], b = plain ? 0 : job.base_of[q];
    double* dz = room.planes + c * kGridRows;
    double* sums = room.sums + q * kGridSums * VL;
    const double* m0 = room.base_plane(b, kMargin);
    const double *slope0 = room.base_plane(b, kSlope), *curve0 = room.base_plane(b, kCurve);
    const MarginError margin(job, d, q);
    vd loss{}, conj[2] = {}, size[2] = {}, reach{}, absolute{}, steepness{}, shifted{};
    for (int i = 0; i < np; i += VL) {
        const vd weight = load(room.weight + i), sign = load(room.sign + i), offset = load(room.offset + i);
        const vd t = sign * load(dz + i), norm = load(room.norm + i), error = margin.of(norm, offset);
        const vi live = weight > 0.0;
        Closed at;
        if (plain) {
            at = closed_at<L>(t + offset, nullptr, error, weight, shape);
        } else {
            const vd u = -(load(slope0 + i) + load(curve0 + i) * t);
            at = closed_at<L>(load(m0 + i) + t, &u, error, weight, shape);
        }
        const vd steep = select(live, weight * at.steep, vd{});
        const vd value = select(live, weight * at.value, vd{}), mass = weight * sign * at.u, shift = at.u * offset;
        const vd term = weight * (at.conj + shift), large = vabs(mass);
        const vi negative = mass < 0.0;
        const vd minus = select(negative, term, vd{}), below = select(negative, large, vd{});
        loss += value;
        conj[0] += term - minus;
        conj[1] += minus;
        size[0] += large - below;
        size[1] += below;
        reach += select(live, steep * norm, vd{});
        steepness += steep;
        shifted += steep * vabs(offset);
        absolute += value + weight * (vabs(at.conj) + vabs(shift) + kTiny);
        store(dz + i, mass);
    }
    const vd more[kGridSums] = {loss, conj[0], conj[1], size[0], size[1], reach, absolute, vd{}, steepness, shifted};
    for (int v = 0; v < kGridSums; ++v) store(sums + v * VL, load(sums + v * VL) + more[v]);
}

// close_model for the logistic loss near its base point, by series (grid/taylor.hpp); all rows of the chunk have one
// sign and no offsets.
inline void close_by_series(const GridJob& job, const GridRoom& room, i64 c, int np, int side, bool nearer) {
    const i64 q = room.models[c], b = job.base_of[q];
    double* dz = room.planes + c * kGridRows;
    double* sums = room.sums + q * kGridSums * VL;
    const double sign = side ? -1.0 : 1.0;
    const double* base = room.base_plane(b, 0);
    const SeriesSums s = nearer ? series_model<kShortLossOrder, kShortConjOrder>(base, sign, np, dz)
                                : series_model<kLossOrder, kConjOrder>(base, sign, np, dz);
    const double* once = room.base_plane(b, kOnce);  // sums shared by all models of the base
    const vd value = load(once), term = s.conj - (value + load(once + VL));
    auto add = [&](int v, vd more) { store(sums + v * VL, load(sums + v * VL) + more); };
    add(0, value + s.loss);
    add(1 + side, term);
    add(3 + side, load(once + 2 * VL) - s.mass);
    // The |slope| at the model is at most exp(1/8) p, u is at least 7/8 p, and within an error of 1/64 (series_order)
    // the slope changes by a factor of at most exp(1/64): the largest |slope| is at most 1.32 u.
    add(5, 1.35 * (load(once + 3 * VL) - s.reach));
    add(8, 1.35 * (load(once + 2 * VL) - s.mass));
    // Terms of the sums: the losses at the base (twice), u m0 (at most slightly above |conj| + l0), and changes below
    // l0/7.
    add(6, 4.0 * value - term + splat(kTiny * room.heavy));
}

// The part of the closing pass that depends on the loss: close_model for models without and with a step, and whether
// u >= 0, so that the side of a row is its sign.
struct GridLoss {
    using Close = void (*)(const GridJob&, const GridRoom&, i64 d, Shape, i64 c, int np);
    Close without_step, with_step;
    bool one_sided;
};
inline GridLoss grid_loss(LossId id) {
    return with_loss(id, [](auto loss) {
        using L = decltype(loss);
        constexpr bool two_sided =
            std::is_same_v<L, Squared> || std::is_same_v<L, Huber> || std::is_same_v<L, Absolute>;
        return GridLoss{close_model<L, true>, close_model<L, false>, !two_sided};
    });
}

// Loss, slope and curvature of the base points on the rows of the chunk.
inline void close_bases(const GridRoom& room, LossSpec spec, i64 active, int np, bool series) {
    const LossOps loss = ops(spec.id);
    for (i64 b = 0; b < room.bases; ++b) {
        const double* z = room.planes + (active + b) * kGridRows;
        double* m0 = room.base_plane(b, kMargin);
        for (int i = 0; i < np; i += VL) store(m0 + i, load(room.sign + i) * load(z + i) + load(room.offset + i));
        loss.at(np, spec.shape, m0, room.base_plane(b, kValue), room.base_plane(b, kSlope), room.base_plane(b, kCurve));
        if (series) series_coefficients(room.base_plane(b, 0), room.weight, room.norm, np);
    }
}

// Write the header of sums/closing.hpp for every model, from its vectors of sums; v- is followed by the number of
// held-out rows on the wrong side. magnitude uses |x|.|w| + |b| <= |x| reach + reach_b, and spread is bounded by the
// same sum.
inline void grid_headers(const GridJob& job, const GridRoom& room, i64 d, i64 rows, double* out) {
    for (i64 q = 0; q < job.models; ++q) {
        double header[kGridSums];
        for (int v = 0; v < kGridSums; ++v) header[v] = total(load(room.sums + (q * kGridSums + v) * VL));
        const double spread = header[5], wrong = header[7];
        header[5] = spread * job.reach[2 * q] + header[8] * (job.reach[2 * q + 1] + kTiny) + header[9];
        header[6] += kTiny * (double)rows;
        header[7] = spread + kTiny * (double)rows;
        for (int v = 0; v < 8; ++v) out[v * job.padded_models + q] += header[v];
        out[(8 + 2 * d) * job.padded_models + q] += wrong;
    }
}

// Add G (d, columns of the active models) to v of these models.
inline void add_to_models(const GridJob& job, const GridRoom& room, i64 d, const double* G, double* v) {
    const i64 k = room.active_columns();
    for (i64 j = 0; j < d; ++j)
        for (i64 c = 0; c < room.active; ++c) v[j * job.padded_models + room.models[c]] += G[j * k + c];
}

// Series to use for model number c on the chunk: 0 short, 1 long, 2 none, if its scores are far from those of its base.
inline int series_order(const GridJob& job, const GridRoom& room, i64 d, i64 c, int np) {
    const MarginError margin(job, d, room.models[c]);
    if (room.light || !(margin.share * (room.longest * margin.reach + margin.shift) <= 1.0 / 64.0)) return 2;
    return distance(room.planes + c * kGridRows, np);
}

// The closing pass of all models. out: the header of sums/closing.hpp (8, K), v+ (d, K), v- (d, K), and (K) the numbers
// of held-out rows on the wrong side; K = padded_models.
template <class R>
void grid_closing(const R& X, i64 lo, i64 hi, const Targets& t, LossSpec spec, const GridJob& job, double* out,
                  Arena* arena) {
    const GridLoss loss = grid_loss(spec.id);
    const bool one_sided = loss.one_sided;
    GridRoom room(job, X.d, hi - lo, arena);
    if (arena->counts()) return;
    for (i64 v = 0; v < kGridSums * VL * job.models; ++v) room.sums[v] = 0.0;
    const bool series = spec.id == LossId::logistic && !t.offset && !room.plain;
    room.sort_rows(job, t, one_sided, lo, hi);
    double* v[2] = {out + 8 * job.padded_models, out + (8 + X.d) * job.padded_models};
    for (i64 list = 0; list < 2 * (job.parts + 1); ++list) {
        const i64 first = room.starts[list], end = room.starts[list + 1];
        const int side = (int)(list & 1);
        if (first == end) continue;
        room.open_part(job, X.d, list / 2 - 1);
        const i64 K = room.active_columns();
        for (double* G : room.G)
            for (i64 e = 0; e < X.d * K; ++e) G[e] = 0.0;
        for (i64 at = first; at < end; at += kGridRows) {
            const int nr = (int)min64(kGridRows, end - at), np = padded(nr);
            const i64* rows = room.order + at;
            list_scores(X, rows, nr, end - at - nr, room.W, room.k, room.rowwise);
            room.open_rows(X, t, rows, nr);
            room.judge(job, rows, nr);
            close_bases(room, spec, room.active, np, series);
            for (i64 c = 0; c < room.active; ++c) {
                const int far = series ? series_order(job, room, X.d, c, np) : 2;
                if (far < 2)
                    close_by_series(job, room, c, np, side, far == 0);
                else
                    (room.plain ? loss.without_step : loss.with_step)(job, room, X.d, spec.shape, c, np);
            }
            transpose(K, np, room.planes, kGridRows, room.rowwise, K);
            if (one_sided) {
                add_list(X, rows, nr, room.rowwise, K, room.G[side]);
                continue;
            }
            for (i64 e = 0; e < nr * K; ++e) {
                room.planes[e] = room.rowwise[e] < 0.0 ? room.rowwise[e] : 0.0;
                room.rowwise[e] = room.rowwise[e] < 0.0 ? 0.0 : room.rowwise[e];
            }
            add_list(X, rows, nr, room.rowwise, K, room.G[0]);
            add_list(X, rows, nr, room.planes, K, room.G[1]);
        }
        for (int s = 0; s < 2; ++s)
            if (!one_sided || s == side) add_to_models(job, room, X.d, room.G[s], v[s]);
    }
    grid_headers(job, room, X.d, hi - lo, out);
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
