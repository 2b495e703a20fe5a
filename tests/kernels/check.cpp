// The kernels without Python, for platforms on which no Python is at hand: decimal numbers, passes against plain loops, and
// whole fits whose certificate must close. `make platforms` compiles it for each of them and runs it where it can.
// tests/kernels/*.py is the thorough test.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <vector>

#include "core/arena.hpp"
#include "core/interrupt.hpp"
#include "core/kernels.hpp"
#include "core/platform.hpp"
#include "dual/ascent.hpp"
#include "io/libsvm.hpp"
#include "sums/enclosure.hpp"

namespace linsep {

// Nobody interrupts this program.
void poll() {}
void poll_flag(const std::atomic<bool>*) {}

namespace {

using Vector = std::vector<double>;

int checks = 0, failures = 0;
void check(bool right, const char* what, const char* set = "", i64 size = 0) {
    ++checks;
    if (right) return;
    ++failures;
    std::printf("WRONG: %s %s %d\n", what, set, static_cast<int>(size));
}
bool near(double a, double b, double scale) { return std::fabs(a - b) <= 1e-12 * scale; }

// Numbers in (-1, 1), the same on every machine (Steele, Lea, Flood 2014).
struct Numbers {
    std::uint64_t state = 1;
    double next() {
        std::uint64_t x = state += 0x9e3779b97f4a7c15u;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
        return static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1p-52 - 1.0;
    }
};

// A table with targets, in each of the four storages.
struct Sample {
    i64 n, d;
    Vector x, sign, weight, theta;
    std::vector<float> x32;
    std::vector<std::int32_t> indices;
    std::vector<i64> starts;

    Sample(i64 rows, i64 columns) : n(rows), d(columns) {
        Numbers numbers;
        for (i64 i = 0; i < n; ++i) {
            double score = 0.3;
            starts.push_back(i * d);
            for (i64 j = 0; j < d; ++j) {
                x32.push_back(static_cast<float>(numbers.next()));
                x.push_back(static_cast<double>(x32.back()));
                indices.push_back(static_cast<std::int32_t>(j));
                score += (j % 2 ? 1.0 : -1.0) * x.back();
            }
            sign.push_back(score + 2.0 * numbers.next() > 0.0 ? 1.0 : -1.0);
            weight.push_back(1.5 + numbers.next());
        }
        starts.push_back(n * d);
        for (i64 j = 0; j <= d; ++j) theta.push_back(numbers.next());
    }
    Rows rows(Store store) const {
        const bool wide = store == Store::dense64 || store == Store::csr64;
        return {store, n, d, wide ? static_cast<const void*>(x.data()) : x32.data(), indices.data(), starts.data()};
    }
    Targets targets() const { return {sign.data(), nullptr, weight.data()}; }
    double score(i64 i) const {
        double z = theta[static_cast<std::size_t>(d)];
        for (i64 j = 0; j < d; ++j) z += at(i, j) * theta[static_cast<std::size_t>(j)];
        return z;
    }
    double at(i64 i, i64 j) const { return j < d ? x[static_cast<std::size_t>(i * d + j)] : 1.0; }
};

const Store kStores[] = {Store::dense64, Store::dense32, Store::csr64, Store::csr32};
const LossSpec kLogistic{LossId::logistic}, kHinge{LossId::hinge};

Vector zeros(i64 size) { return Vector(static_cast<std::size_t>(size)); }

template <class T>
void check_number(const char* text, T expected, libsvm::Read kind = libsvm::Read::number) {
    T found = -7;
    const char* p = text;
    check(libsvm::number(p, text + std::strlen(text), found) == kind, text);
    if (kind == libsvm::Read::number) check(found == expected && std::signbit(found) == std::signbit(expected), text);
}
void check_numbers() {
    constexpr double tiny = std::numeric_limits<double>::denorm_min(), huge = std::numeric_limits<double>::max();
    check_number("0.1", 0.1);
    check_number("+12345678901234567", 12345678901234567.0);
    check_number("-0.12345678901234567890123", -0.12345678901234567890123);
    check_number("9007199254740993", 9007199254740992.0);  // halfway, to even
    check_number("9007199254740993.00000000000000000000000001", 9007199254740994.0);
    check_number("17976931348623157081e289", huge);
    check_number("179769313486231590000e289", huge, libsvm::Read::out_of_range);
    check_number("-1e999", 0.0, libsvm::Read::out_of_range);
    check_number("4.9406564584124654e-324", tiny);
    check_number("2.4703282292062327e-324", 0.0);
    check_number("-1e-999", -0.0);
    check_number("00000000000000000000000e9", 0.0);
    check_number("3.4028235677973367e38", 0.0f, libsvm::Read::out_of_range);
    check_number("1.00000017881393432617187499", 1.00000011920928955f);
    check_number("1.00000017881393432617187501", 1.00000023841857910f);
    check_number("e5", 0.0, libsvm::Read::not_a_number);
}

// Value, gradient, scores and Gram matrix against plain loops.
void check_passes(const Table& table, const Sample& sample, Store store) {
    const i64 n = sample.n, d = sample.d, order = d + 1;
    const Rows rows = sample.rows(store);
    Vector out = zeros(1 + order), z = zeros(n), expected = zeros(1 + order), plain = zeros(order * order);
    table.sweep(rows, 0, n, sample.targets(), kLogistic, sample.theta.data(), out.data(), nullptr, true, 0.0);
    table.scores(rows, 0, n, sample.theta.data(), z.data());
    bool scores = true, gram = true;
    for (i64 i = 0; i < n; ++i) {
        const std::size_t row = static_cast<std::size_t>(i);
        const double score = sample.score(i), m = sample.sign[row] * score, s = sample.weight[row];
        scores = scores && near(z[row], score, 1.0 + static_cast<double>(d));
        expected[0] += s * std::log1p(std::exp(-m));
        const double slope = -s * sample.sign[row] / (1.0 + std::exp(m));
        for (i64 j = 0; j <= d; ++j) {
            expected[static_cast<std::size_t>(1 + j)] += slope * sample.at(i, j);
            for (i64 k = 0; k <= d; ++k)
                plain[static_cast<std::size_t>(j * order + k)] += s * sample.at(i, j) * sample.at(i, k);
        }
    }
    check(scores, "scores", table.name, d);
    bool sums = true;
    for (std::size_t j = 0; j < out.size(); ++j) sums = sums && near(out[j], expected[j], 4.0 * static_cast<double>(n));
    check(sums, "sweep", table.name, d);
    const Vector mu = zeros(d);
    Vector found = zeros(order * order), scratch = zeros(gram_scratch(rows) + 1);
    table.gram(rows, 0, n, sample.weight.data(), mu.data(), found.data(), scratch.data(), true);
    for (i64 j = 0; j <= d; ++j)
        for (i64 k = j; k <= d; ++k) {  // CSR adds to any triangle
            const std::size_t upper = static_cast<std::size_t>(j * order + k);
            const std::size_t lower = static_cast<std::size_t>(k * order + j);
            const double both = is_dense(store) || j == k ? found[upper] : found[upper] + found[lower];
            gram = gram && near(both, plain[upper], 4.0 * static_cast<double>(n));
        }
    check(gram, "gram", table.name, d);
}

template <class F>
auto in_arena(const F& run) {
    Arena arena;
    run(&arena);
    Vector room = zeros(arena.used + 64);
    arena = {room.data(), 0};
    return run(&arena);
}

constexpr double kLam = 0.5;

// Whether the gap of a closing pass is closed.
void check_gap(const Table& table, const Sample& sample, Store store, LossSpec loss, const Vector& theta,
               const Vector& u, double tol, const char* what) {
    Vector sums = zeros(8 + 2 * sample.d);
    table.closing(sample.rows(store), 0, sample.n, sample.targets(), loss, theta.data(), theta.data(), theta.data(),
                  u.data(), sums.data(), nullptr, nullptr);
    const Enclosure e = enclosure(sums.data(), theta.data(), sample.d, kLam, true, static_cast<double>(sample.n));
    check(e.primal > 0.0 && e.primal - e.bound + e.rounding <= tol * e.primal && e.primal - e.bound >= -e.rounding,
          what, table.name, sample.d);
}

// Newton's method, the interior point method and dual ascent.
void check_fits(const Table& table, const Sample& sample, Store store) {
    const Rows rows = sample.rows(store);
    const i64 n = sample.n, d = sample.d;
    Vector theta = zeros(d + 1), base = zeros(d + 1), step = zeros(d + 1), sums = zeros(8 + 2 * d), u = zeros(n);
    HelperThread thread(true);
    const NewtonJob newton{kLam, 1e-9, 100, 1, 0, thread.helper()};
    in_arena([&](Arena* arena) {
        return table.newton(rows, sample.targets(), kLogistic, newton, theta.data(), base.data(), step.data(),
                            sums.data(), arena);
    });
    const Enclosure e = enclosure(sums.data(), theta.data(), d, kLam, true, static_cast<double>(n));
    check(e.primal - e.bound + e.rounding <= 1e-8 * e.primal, "newton", table.name, d);

    theta = zeros(d + 1);
    const InteriorJob interior{kLam, 1e-8, 200, 1, 0};
    in_arena([&](Arena* arena) {
        return table.interior(rows, sample.targets(), kHinge, interior, theta.data(), u.data(), sums.data(), arena);
    });
    check_gap(table, sample, store, kHinge, theta, u, 1e-7, "interior");

    theta = zeros(d + 1);
    Ascent ascent(table, {rows, sample.targets(), kLogistic, kLam, 1e-4, true, true, 0, 1e3, 2.0}, theta.data());
    ascent.most = 1000;
    for (int round = 0; round < 300; ++round) {
        const Next next = ascent.advance(1e9, 1e9);
        if (next == Next::end || next == Next::broken) break;
        if (next == Next::close) ascent.report_gap(1.0);
    }
    ascent.point(theta.data(), u.data());
    check_gap(table, sample, store, kLogistic, theta, u, 1e-3, "dual ascent");
}

void check_set(const Table& table) {
    for (const i64 d : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 70}) {
        const Sample sample(203, d);
        for (const Store store : kStores) {
            check_passes(table, sample, store);
            if (d % 4 == 1) check_fits(table, sample, store);
        }
    }
    std::printf("instruction set %s checked\n", table.name);
}

}  // namespace
}  // namespace linsep

int main() {
    using namespace linsep;
    check_numbers();
    check_set(table_base());
#if defined(LINSEP_X86)
    const int level = platform::x86_level();
    std::printf("processor: x86-64-v%d\n", level);
    if (level >= 3) check_set(table_avx2());
    if (level >= 4) check_set(table_avx512());
#endif
    std::printf("%d checks, %d failures\n", checks, failures);
    return failures ? 1 : 0;
}
