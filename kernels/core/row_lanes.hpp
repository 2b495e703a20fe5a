// Vector helpers for rows: sums over lanes, last entries that do not fill a vector, loops with a compile-time count.
#pragma once
#include "core/api.hpp"
#include "core/simd.hpp"

namespace linsep::LINSEP_ARCH {
namespace {

constexpr int kMaxChunk = 256;
inline i64 min64(i64 a, i64 b) { return a < b ? a : b; }

// Sums over the lanes of VL vectors at once, as one vector.
inline vd reduce(const vd* a) {
#if LINSEP_LANES == 8
    vd b[4], c[2];
    for (int i = 0; i < 4; ++i)
        b[i] = shuffle<0, 8, 2, 10, 4, 12, 6, 14>(a[2 * i], a[2 * i + 1]) +
               shuffle<1, 9, 3, 11, 5, 13, 7, 15>(a[2 * i], a[2 * i + 1]);
    for (int i = 0; i < 2; ++i)
        c[i] = shuffle<0, 1, 8, 9, 4, 5, 12, 13>(b[2 * i], b[2 * i + 1]) +
               shuffle<2, 3, 10, 11, 6, 7, 14, 15>(b[2 * i], b[2 * i + 1]);
    return shuffle<0, 1, 2, 3, 8, 9, 10, 11>(c[0], c[1]) + shuffle<4, 5, 6, 7, 12, 13, 14, 15>(c[0], c[1]);
#elif LINSEP_LANES == 4
    vd b[2];
    for (int i = 0; i < 2; ++i)
        b[i] = shuffle<0, 4, 2, 6>(a[2 * i], a[2 * i + 1]) + shuffle<1, 5, 3, 7>(a[2 * i], a[2 * i + 1]);
    return shuffle<0, 1, 4, 5>(b[0], b[1]) + shuffle<2, 3, 6, 7>(b[0], b[1]);
#else
    return shuffle<0, 2>(a[0], a[1]) + shuffle<1, 3>(a[0], a[1]);
#endif
}

// The last d % VL entries of a row are read as its last VL entries and multiplied by weights that are 0 on the overlap.
// Rows shorter than a vector are padded with zeros.
template <class T>
inline vd tail(const T* p, i64 d) {
    return d < VL ? load_first(p, d) : load(p + d - VL);
}
inline vd tail_weights(const double* w, i64 d) {
    if (d < VL) return load_first(w, d);
    double t[VL] = {};
    for (i64 j = d - d % VL; j < d; ++j) t[j - (d - VL)] = w[j];
    return load(t);
}

// Load, store and sum of 4, 2 or 1 numbers.
template <class Doubles, class Floats>
struct Piece {
    static Doubles load(const double* p) {
        Doubles v;
        std::memcpy(&v, p, sizeof v);
        return v;
    }
    static Doubles load(const float* p) {
        Floats v;
        std::memcpy(&v, p, sizeof v);
        return __builtin_convertvector(v, Doubles);
    }
    static void store(double* p, Doubles v) { std::memcpy(p, &v, sizeof v); }
    static double sum(Doubles v) {
        if constexpr (sizeof v == 32)
            return (v[0] + v[1]) + (v[2] + v[3]);
        else if constexpr (sizeof v == 16)
            return v[0] + v[1];
        else
            return v[0];
    }
};
typedef double v4d __attribute__((vector_size(32)));
typedef double v2d __attribute__((vector_size(16)));
typedef double v1d __attribute__((vector_size(8)));
typedef float v4f __attribute__((vector_size(16)));
typedef float v2f __attribute__((vector_size(8)));
typedef float v1f __attribute__((vector_size(4)));

template <int N>
struct Count {
    static constexpr int value = N;
};
// Call f(Count<n>{}) for n <= 8.
template <class F>
void with_count(i64 n, F f) {
    switch (n) {
        case 0:
            return f(Count<0>{});
        case 1:
            return f(Count<1>{});
        case 2:
            return f(Count<2>{});
        case 3:
            return f(Count<3>{});
        case 4:
            return f(Count<4>{});
        case 5:
            return f(Count<5>{});
        case 6:
            return f(Count<6>{});
        case 7:
            return f(Count<7>{});
        default:
            return f(Count<8>{});
    }
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
