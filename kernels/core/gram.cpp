// Tiles of a Gram matrix, computed from packed rows.
// Compiled once per instruction set: see core/dispatch.cpp.
#include "core/gram.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

// out += A'B over the packed rows of two panels: at most I rows (`height`) by at most V vectors (`width` columns) of
// the second panel; `order` is the row stride of out.
template <class E, int I, int V>
inline void tile(const E* a, const E* b, int rows, double* out, i64 order, i64 height, i64 width) {
    using vector = typename Lanes<E>::vector;
    constexpr int W = kPanel<E>, count = Lanes<E>::count;
    vector acc[I][V] = {};
    for (int r = 0; r < rows; ++r, a += W, b += W) {
        vector first = Lanes<E>::load(b), second, third;
        keep(first);
        if constexpr (V > 1) {
            second = Lanes<E>::load(b + count);
            keep(second);
        }
        if constexpr (V > 2) {
            third = Lanes<E>::load(b + 2 * count);
            keep(third);
        }
        for (int q = 0; q < I; ++q) {
            const vector s = a[q] - vector{};
            acc[q][0] += s * first;
            if constexpr (V > 1) acc[q][1] += s * second;
            if constexpr (V > 2) acc[q][2] += s * third;
        }
    }
    if (width > V * count) width = V * count;
    for (int q = 0; q < I && q < height; ++q, out += order) {
        E row[V * count];
        std::memcpy(row, acc[q], sizeof row);
        i64 j = 0;
        for (; j + VL <= width; j += VL) store(out + j, load(out + j) + load(row + j));
        for (; j < width; ++j) out[j] += (double)row[j];
    }
}

// Each row of tiles starts at the vector that contains the diagonal. A group of eight panels stays in the L2 cache
// while the others are read once; polls between groups.
template <class E>
void upper_triangle(const E* pack, i64 columns, i64 panel, int rows, double* out, i64 order) {
    constexpr int W = kPanel<E>, I = kTileRows<E>, count = Lanes<E>::count;
    constexpr i64 group = 8 * W;
    for (i64 first = 0; first < columns; first += group) {
        const i64 end = min64(columns, first + group);
        poll();
        for (i64 i = 0; i < end; i += I) {
            const E* left = pack + i / W * panel + i % W;
            const i64 high = columns - i;
            for (i64 p = i > first ? i / W : first / W; p * W < end; ++p) {
                const i64 j = p * W > i ? p * W : i - i % count;
                const auto one = [&](auto height, auto vectors) {
                    tile<E, height.value, vectors.value>(left, pack + p * panel + (j - p * W), rows,
                                                         out + i * order + j, order, high, columns - j);
                };
                const i64 wide = min64(columns, (p + 1) * W) - j;
                const auto tall = [&](auto vectors) {
                    if (I > 12 && high > 12)
                        one(Count<I>{}, vectors);
                    else if (I > 8 && high > 8)
                        one(Count<(I < 12 ? I : 12)>{}, vectors);
                    else if (I > 4 && high > 4)
                        one(Count<(I < 8 ? I : 8)>{}, vectors);
                    else
                        one(Count<(I < 4 ? I : 4)>{}, vectors);
                };
                if (kVectors > 2 && wide > 2 * count)
                    tall(Count<kVectors>{});
                else if (kVectors > 1 && wide > count)
                    tall(Count<(kVectors < 2 ? 1 : 2)>{});
                else
                    tall(Count<1>{});
            }
        }
    }
}

}  // namespace

void add_tiles(const double* pack, i64 columns, i64 panel, int rows, double* out, i64 order) {
    upper_triangle(pack, columns, panel, rows, out, order);
}
void add_tiles(const float* pack, i64 columns, i64 panel, int rows, double* out, i64 order) {
    upper_triangle(pack, columns, panel, rows, out, order);
}

}  // namespace linsep::LINSEP_ARCH
