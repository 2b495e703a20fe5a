// Code that depends on the compiler, its standard library, the processor or the operating system. All other files are
// C++20 with the vector extensions of clang and GCC 11 or later, which are the same on Linux, macOS and Windows.
// Functions are static: the linker must not merge those that are compiled for different instruction sets.
#pragma once
#if !defined(__GNUC__) && !defined(__clang__)
#error "the kernels need GCC or clang (on Windows: CXX=clang++), for vectors as a language extension"
#endif

#include <charconv>
#include <initializer_list>
#include <system_error>

#if !defined(__cpp_lib_to_chars)
#include <clocale>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#if defined(__APPLE__)
#include <xlocale.h>
#endif
#endif
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if !defined(_WIN32)
#include <unistd.h>
#endif

namespace linsep::platform {

// A number that differs between a process and its forked children. Windows has no fork.
static inline int process_id() {
#if defined(_WIN32)
    return 0;
#else
    return getpid();
#endif
}

// Tell the processor that this thread spins.
static inline void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

// The x86-64 level (2, 3 or 4) that processor and operating system support, or 1.
// __builtin_cpu_supports knows all required features since GCC 11, but only since clang 19.
static inline int x86_level() {
#if defined(__x86_64__)
    const auto has = [](unsigned bits, std::initializer_list<int> wanted) {
        for (const int bit : wanted)
            if (!(bits >> bit & 1u)) return false;
        return true;
    };
    unsigned a = 0, b = 0, c = 0, d = 0, extended = 0, leaf7 = 0;
    if (!__get_cpuid(0x80000001u, &a, &b, &extended, &d)) return 1;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) leaf7 = b;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return 1;
    // SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT; LAHF
    if (!has(c, {0, 9, 13, 19, 20, 23}) || !has(extended, {0})) return 1;
    // FMA, MOVBE, OSXSAVE, AVX, F16C; LZCNT; BMI1, AVX2, BMI2; and registers that the system saves
    if (!has(c, {12, 22, 27, 28, 29}) || !has(extended, {5}) || !has(leaf7, {3, 5, 8})) return 2;
    unsigned saved = 0, high = 0;
    __asm__ volatile("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
    if (!has(saved, {1, 2})) return 2;
    // AVX512F, DQ, CD, BW, VL
    return has(leaf7, {16, 17, 28, 30, 31}) && has(saved, {5, 6, 7}) ? 4 : 3;
#else
    return 1;
#endif
}

// Parse the decimal number in [first, last), which has no plus sign, and round to nearest. Return false on overflow,
// and possibly on underflow.
#if defined(__cpp_lib_to_chars)
template <class T>
static bool from_decimal(const char* first, const char* last, T& out) {
    return std::from_chars(first, last, out).ec != std::errc::result_out_of_range;
}
#else
// Older versions of libc++ (macOS in particular) lack std::from_chars for floating point; strtod also rounds correctly.
static inline void in_c_locale(const char* text, double& out) {
#if defined(_WIN32)
    static const _locale_t c_locale = _create_locale(LC_ALL, "C");
    out = _strtod_l(text, nullptr, c_locale);
#else
    static const locale_t c_locale = newlocale(LC_ALL_MASK, "C", nullptr);
    out = strtod_l(text, nullptr, c_locale);
#endif
}
static inline void in_c_locale(const char* text, float& out) {
#if defined(_WIN32)
    static const _locale_t c_locale = _create_locale(LC_ALL, "C");
    out = _strtof_l(text, nullptr, c_locale);
#else
    static const locale_t c_locale = newlocale(LC_ALL_MASK, "C", nullptr);
    out = strtof_l(text, nullptr, c_locale);
#endif
}
template <class T>
static bool from_decimal(const char* first, const char* last, T& out) {
    in_c_locale(std::string(first, last).c_str(), out);
    return !std::isinf(out);
}
#endif

}  // namespace linsep::platform
