// Strict, allocation-free parser of LIBSVM text: one row per line, `label [qid:n] index:value ... [# comment]`.
//
// The caller counts lines and colons first, so that its arrays are long enough for any content. A fault ends the
// parsing with its kind and the byte position; the caller converts positions to line and column.
#pragma once
#include <cstdint>
#include <cstring>
#include <limits>

#include "core/platform.hpp"

namespace linsep::libsvm {

enum class Fault : int {
    none,
    label,        // not a number
    no_label,     // the row begins with index:value
    many_labels,  // 1,3,7
    label_range,  // NaN, infinity, or too large
    index,        // not a whole number >= 0
    index_limit,  // above the limit of the caller
    index_width,  // above int32: read again with int64
    no_colon,     // an index without a value
    value,        // not a number
    value_range,  // NaN, infinity, or too large
    duplicate,    // one index twice in a row
    qid,          // not a whole number, or not in second place
    stray,        // an unexpected byte
    carriage      // a carriage return that ends no line
};

struct Outcome {
    Fault fault = Fault::none;
    std::int64_t at = 0;      // byte of the fault, or of the beginning of its line for a duplicate index
    std::int64_t detail = 0;  // the duplicate index
    std::int64_t rows = 0, entries = 0, qids = 0;
    std::int64_t lowest = std::numeric_limits<std::int64_t>::max(), highest = -1;  // indices as written
};

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool ends_token(const char* p, const char* end) {
    return p == end || *p == ' ' || *p == '\n' || *p == '\t' || *p == '\r' || *p == '#';
}

template <class T>
struct Exact;  // largest integers and powers of ten up to which T is exact
template <>
struct Exact<double> {
    static constexpr std::uint64_t whole = std::uint64_t{1} << 53;
    static constexpr int power = 22;
};
template <>
struct Exact<float> {
    static constexpr std::uint64_t whole = std::uint64_t{1} << 24;
    static constexpr int power = 10;
};
constexpr double kTen[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                           1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

// Decimal order k of the number in [p, end), written as 0.d... x 10^k with d not 0: positive for numbers of at least 1.
inline std::int64_t decimal_order(const char* p, const char* end) {
    std::int64_t order = 0;
    bool point = false, found = false;
    for (; p < end && (*p | 32) != 'e'; ++p) {
        if (*p == '.') {
            point = true;
            continue;
        }
        found = found || *p != '0';
        if (found && !point) ++order;
        if (!found && point) --order;
    }
    if (p < end) {
        const bool below = *++p == '-';
        std::int64_t e = 0;
        for (p += *p == '-' || *p == '+'; p < end; ++p) e = e < 1000000000 ? e * 10 + (*p - '0') : e;
        order += below ? -e : e;
    }
    return order;
}

enum class Read { number, not_a_number, out_of_range };

// Parse a decimal number, rounded to the nearest T; p is set to its end. With few digits and a small exponent, the
// usual case, one rounded operation on two exact numbers suffices (Clinger 1990); otherwise from_decimal, also
// correctly rounded, is called.
template <class T>
Read number(const char*& p, const char* end, T& out) {
    const char* first = p;
    const bool negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) {
        first = negative ? p : p + 1;  // from_decimal accepts no plus sign
        ++p;
    }
    // m holds up to 19 digits; longer numbers are parsed by from_decimal.
    const char* const begin = p;
    std::uint64_t m = 0;
    int exponent = 0;
    for (; p < end && is_digit(*p); ++p) m = m * 10 + static_cast<std::uint64_t>(*p - '0');
    std::int64_t digits = p - begin;
    if (p < end && *p == '.') {
        const char* const point = ++p;
        for (; p < end && is_digit(*p); ++p) m = m * 10 + static_cast<std::uint64_t>(*p - '0');
        exponent = -static_cast<int>(p - point < 100000 ? p - point : 100000);
        digits += p - point;
    }
    if (digits == 0) {
        auto letter = [&](int k) { return end - p > k ? p[k] | 32 : 0; };
        const bool nan = letter(0) == 'n' && letter(1) == 'a' && letter(2) == 'n';
        const bool inf = letter(0) == 'i' && letter(1) == 'n' && letter(2) == 'f';
        return nan || inf ? Read::out_of_range : Read::not_a_number;
    }
    if (p < end && (*p | 32) == 'e') {
        ++p;
        const bool below = p < end && *p == '-';
        if (p < end && (*p == '-' || *p == '+')) ++p;
        if (p == end || !is_digit(*p)) return Read::not_a_number;
        int e = 0;
        for (; p < end && is_digit(*p); ++p) e = e < 100000 ? e * 10 + (*p - '0') : e;
        exponent += below ? -e : e;
    }
    const bool cut = digits > 19;  // m may have overflowed
    if (m == 0 && !cut) {
        out = negative ? T{-0.0} : T{0};
    } else if (!cut && m <= Exact<T>::whole && exponent >= -Exact<T>::power && exponent <= Exact<T>::power) {
        const T whole = static_cast<T>(m), ten = static_cast<T>(kTen[exponent < 0 ? -exponent : exponent]);
        const T size = exponent < 0 ? whole / ten : whole * ten;
        out = negative ? -size : size;
    } else if (!platform::from_decimal(first, p, out)) {
        if (decimal_order(begin, p) > 0) return Read::out_of_range;
        out = negative ? T{-0.0} : T{0};  // below the smallest subnormal number
    }
    return Read::number;
}

// Parse an integer; p is set to its end. A number that does not fit becomes the largest int64.
inline std::int64_t whole(const char*& p, const char* end) {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    std::int64_t value = 0;
    for (; p < end && is_digit(*p); ++p) value = value > (most - 9) / 10 ? most : value * 10 + (*p - '0');
    return value;
}

// Sort a row by index, by Shell sort in place.
template <class T, class I>
void sort_row(I* index, T* value, std::int64_t n) {
    std::int64_t gap = 1;
    while (gap < n / 9) gap = gap * 9 / 4 + 1;
    for (; gap > 0; gap = gap == 1 ? 0 : (gap - 1) * 4 / 9 < 1 ? 1 : (gap - 1) * 4 / 9)
        for (std::int64_t i = gap; i < n; ++i) {
            const I key = index[i];
            const T of_key = value[i];
            std::int64_t j = i;
            for (; j >= gap && index[j - gap] > key; j -= gap) index[j] = index[j - gap], value[j] = value[j - gap];
            index[j] = key;
            value[j] = of_key;
        }
}

template <class T, class I>
class Reader {
  public:
    Reader(const char* text, std::int64_t size, std::int64_t limit)
        : begin_(text), p_(text), end_(text + size), limit_(limit) {}

    // Array sizes: labels and qid one entry per line, starts one more, indices and values one entry per colon.
    Outcome run(double* labels, std::int64_t* qid, std::int64_t* starts, I* indices, T* values) {
        starts[0] = 0;
        while (p_ < end_ && done_.fault == Fault::none) {
            const char* line = p_;
            blanks();
            if (p_ < end_ && *p_ != '\n' && *p_ != '\r' && *p_ != '#') {
                qid[done_.rows] = -1;
                if (!label(labels[done_.rows]) || !group(qid[done_.rows]) || !row(indices, values, line)) break;
                starts[++done_.rows] = done_.entries;
            }
            line_end();
        }
        return done_;
    }

  private:
    bool fail(Fault fault, const char* at) {
        done_.fault = fault;
        done_.at = at - begin_;
        return false;
    }
    void blanks() {
        while (p_ < end_ && (*p_ == ' ' || *p_ == '\t')) ++p_;
    }
    bool label(double& y) {
        const char* at = p_;
        const Read read = number(p_, end_, y);
        if (read == Read::out_of_range) return fail(Fault::label_range, at);
        if (read == Read::number && p_ < end_ && *p_ == ',') return fail(Fault::many_labels, at);
        if (read == Read::number && p_ < end_ && *p_ == ':') return fail(Fault::no_label, at);
        if (read != Read::number || !ends_token(p_, end_)) return fail(Fault::label, at);
        blanks();
        return true;
    }
    bool group(std::int64_t& qid) {
        if (end_ - p_ < 4 || std::memcmp(p_, "qid:", 4) != 0) return true;
        const char* at = p_;
        p_ += 4;
        if (p_ == end_ || !is_digit(*p_)) return fail(Fault::qid, at);
        qid = whole(p_, end_);
        if (!ends_token(p_, end_) || qid == std::numeric_limits<std::int64_t>::max()) return fail(Fault::qid, at);
        ++done_.qids;
        return true;
    }
    bool row(I* indices, T* values, const char* line) {
        const std::int64_t first = done_.entries;
        std::int64_t before = -1;
        bool sorted = true;
        for (blanks(); p_ < end_ && *p_ != '\n' && *p_ != '\r' && *p_ != '#'; blanks()) {
            const char* at = p_;
            if (!is_digit(*p_)) return fail(stray(), at);
            const std::int64_t index = whole(p_, end_);
            if (p_ == end_ || *p_ != ':') return fail(ends_token(p_, end_) ? Fault::no_colon : Fault::index, at);
            if (index > limit_) return fail(Fault::index_limit, at);
            if (index > std::numeric_limits<I>::max()) return fail(Fault::index_width, at);
            const char* value = ++p_;
            const Read read = number(p_, end_, values[done_.entries]);
            if (read == Read::out_of_range) return fail(Fault::value_range, value);
            if (read != Read::number || !ends_token(p_, end_)) return fail(Fault::value, value);
            sorted = sorted && index > before;
            before = index;
            indices[done_.entries++] = static_cast<I>(index);
            if (index < done_.lowest) done_.lowest = index;
            if (index > done_.highest) done_.highest = index;
        }
        return sorted || put_in_order(indices + first, values + first, done_.entries - first, line);
    }
    bool put_in_order(I* indices, T* values, std::int64_t n, const char* line) {
        sort_row(indices, values, n);
        for (std::int64_t i = 1; i < n; ++i)
            if (indices[i] == indices[i - 1]) {
                done_.detail = indices[i];
                return fail(Fault::duplicate, line);
            }
        return true;
    }
    Fault stray() const {
        if (*p_ == '-' || *p_ == '+' || *p_ == ':') return Fault::index;
        return *p_ == 'q' ? Fault::qid : Fault::stray;
    }
    void line_end() {
        if (p_ < end_ && *p_ == '#') {
            const void* next = std::memchr(p_, '\n', static_cast<std::size_t>(end_ - p_));
            p_ = next ? static_cast<const char*>(next) : end_;
        }
        if (p_ < end_ && *p_ == '\r') {
            if (p_ + 1 < end_ && p_[1] != '\n')
                fail(Fault::carriage, p_);
            else
                ++p_;
        }
        if (p_ < end_ && *p_ == '\n') ++p_;
    }

    const char *begin_, *p_, *end_;
    std::int64_t limit_;
    Outcome done_;
};

}  // namespace linsep::libsvm
