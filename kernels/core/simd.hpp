// Vectors of doubles in the compiler's vector extension: one source for SSE, AVX2, AVX-512 and NEON.
// VL is the number of lanes that suits the instruction set of this translation unit. The build may set LINSEP_LANES to
// eight where registers have four lanes, to test the kernels for AVX-512 on machines without it.
#pragma once
#include <cstdint>
#include <cstring>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#if !defined(LINSEP_LANES) && defined(__AVX512F__)
#define LINSEP_LANES 8
#elif !defined(LINSEP_LANES) && defined(__AVX2__)
#define LINSEP_LANES 4
#elif !defined(LINSEP_LANES)
#define LINSEP_LANES 2
#endif
// Defined if a vector fills exactly one register of that set, so that its intrinsics can be used.
#if LINSEP_LANES == 8 && defined(__AVX512F__)
#define LINSEP_AVX512 1
#elif LINSEP_LANES == 4 && defined(__AVX2__)
#define LINSEP_AVX2 1
#endif

namespace linsep::LINSEP_ARCH {
namespace {

constexpr int VL = LINSEP_LANES;

typedef double vd __attribute__((vector_size(8 * VL)));
typedef float vf __attribute__((vector_size(4 * VL)));
typedef std::int64_t vi __attribute__((vector_size(8 * VL)));

inline vd load(const double* p) {
    vd v;
    std::memcpy(&v, p, sizeof v);
    return v;
}
inline vd load(const float* p) {
    vf v;
    std::memcpy(&v, p, sizeof v);
    return __builtin_convertvector(v, vd);
}
inline void store(double* p, vd v) { std::memcpy(p, &v, sizeof v); }
// Load the first n < VL numbers, padded with zeros. Does not read beyond them.
template <class T>
inline vd load_first(const T* p, std::int64_t n) {
#if LINSEP_AVX512
    if constexpr (sizeof(T) == 8)
        return (vd)_mm512_maskz_loadu_pd((__mmask8)((1u << n) - 1u), p);
    else
        return __builtin_convertvector((vf)_mm256_maskz_loadu_ps((__mmask8)((1u << n) - 1u), p), vd);
#elif LINSEP_AVX2
    alignas(32) static constexpr std::int64_t kMask[8] = {-1, -1, -1, -1};
    alignas(16) static constexpr std::int32_t kHalf[8] = {-1, -1, -1, -1};
    if constexpr (sizeof(T) == 8)
        return (vd)_mm256_maskload_pd(p, _mm256_loadu_si256((const __m256i*)(kMask + 4 - n)));
    else
        return __builtin_convertvector((vf)_mm_maskload_ps(p, _mm_loadu_si128((const __m128i*)(kHalf + 4 - n))), vd);
#else
    double t[VL] = {};
    for (std::int64_t j = 0; j < n; ++j) t[j] = (double)p[j];
    return load(t);
#endif
}
// Keep v in a register: compilers assume that reading an operand from memory again is free.
template <class V>
inline void keep([[maybe_unused]] V& v) {
#if LINSEP_AVX512
    __asm__("" : "+v"(v));
#elif defined(__x86_64__) && (LINSEP_AVX2 || LINSEP_LANES == 2)
    __asm__("" : "+x"(v));
#endif
}
// Select lanes of a (0 .. VL-1) and b (VL .. 2 VL-1).
template <int... lane>
inline vd shuffle(vd a, vd b) {
    static_assert(sizeof...(lane) == VL);
#if defined(__clang__) || __GNUC__ >= 12
    return __builtin_shufflevector(a, b, lane...);
#else
    return __builtin_shuffle(a, b, vi{lane...});
#endif
}
inline vd splat(double x) { return x - vd{}; }
inline vd select(vi mask, vd a, vd b) { return (vd)((mask & (vi)a) | (~mask & (vi)b)); }
// NaN in the first argument stays NaN.
inline vd vmax(vd a, vd b) { return select(a < b, b, a); }
inline vd vsqrt(vd a) {
    for (int i = 0; i < VL; ++i) a[i] = __builtin_sqrt(a[i]);
    return a;
}
inline vd vmin(vd a, vd b) { return select(a > b, b, a); }
inline vd vabs(vd a) { return (vd)((vi)a & (INT64_MAX - vi{})); }

// Return whether a comparison holds in any lane.
inline bool any(vi mask) {
#if LINSEP_AVX512
    return _mm512_test_epi64_mask((__m512i)mask, (__m512i)mask) != 0;
#elif LINSEP_AVX2
    return _mm256_movemask_pd((__m256d)mask) != 0;
#else
    std::int64_t all = 0;
    for (int i = 0; i < VL; ++i) all |= mask[i];
    return all != 0;
#endif
}

// The lanes in which a comparison holds, as bits.
inline unsigned bits(vi mask) {
#if LINSEP_AVX512
    return _mm512_test_epi64_mask((__m512i)mask, (__m512i)mask);
#elif LINSEP_AVX2
    return (unsigned)_mm256_movemask_pd((__m256d)mask);
#else
    unsigned all = 0;
    for (int i = 0; i < VL; ++i) all |= (unsigned)(mask[i] & 1) << i;
    return all;
#endif
}

// Sum of the lanes, added pairwise in a fixed order.
inline double total(vd v) {
    double t[VL];
    store(t, v);
    for (int w = VL / 2; w > 0; w /= 2)
        for (int i = 0; i < w; ++i) t[i] += t[i + w];
    return t[0];
}

// 2^k from the low bits of (x + 1.5 * 2^52): the classical rounding trick needs no conversion instruction.
constexpr double kMagic = 6755399441055744.0;
constexpr double kLog2e = 1.4426950408889634074;
constexpr double kLn2Hi = 6.93147180369123816490e-01;  // 33 leading bits of ln 2: k * kLn2Hi is exact
constexpr double kLn2Lo = 1.90821492927058770002e-10;

// exp(x) for x clamped to [-708, 709]: x = k ln2 + r, |r| <= ln2/2, Taylor series to r^13 (error below 2 ulp).
inline vd vexp(vd x) {
    x = vmin(vmax(x, splat(-708.0)), splat(709.0));
    const vd shifted = x * kLog2e + kMagic;
    const vd k = shifted - kMagic;
    const vd r = (x - k * kLn2Hi) - k * kLn2Lo;
    vd p = splat(1.0 / 6227020800.0);
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    const vi scale = ((vi)shifted + 1023) << 52;
    return p * (vd)scale;
}

// 2 atanh(s) = log((1+s)/(1-s)) for |s| <= 0.1716 (= 3 - 2 sqrt 2): odd series to s^21.
inline vd twice_atanh(vd s) {
    const vd q = s * s;
    vd p = splat(2.0 / 21.0);
    p = p * q + 2.0 / 19.0;
    p = p * q + 2.0 / 17.0;
    p = p * q + 2.0 / 15.0;
    p = p * q + 2.0 / 13.0;
    p = p * q + 2.0 / 11.0;
    p = p * q + 2.0 / 9.0;
    p = p * q + 2.0 / 7.0;
    p = p * q + 2.0 / 5.0;
    p = p * q + 2.0 / 3.0;
    return s * (p * q + 2.0);
}

// log(x) for x > 0, including subnormal numbers; a large negative number for x = 0, so that 0 log 0 = 0.
inline vd vlog(vd x) {
    const vi tiny = x < 2.2250738585072014e-308;
    x = vmax(select(tiny, x * 18014398509481984.0, x), splat(2.2250738585072014e-308));  // 2^54
    vi bits = (vi)x;
    // exponent such that the mantissa lies in [sqrt(1/2), sqrt 2)
    const vi shifted = bits - (std::int64_t)0x3fe6a09e667f3bcd;
    const vi k = (shifted >> 52) - (tiny & 54);
    const vd f = (vd)(bits - ((shifted >> 52) << 52));
    // k as a double, again by the rounding trick: |k| is far below 2^51
    const vd kd = (vd)(k + (std::int64_t)0x4338000000000000) - kMagic;
    return kd * kLn2Hi + (twice_atanh((f - 1.0) / (f + 1.0)) + kd * kLn2Lo);
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
