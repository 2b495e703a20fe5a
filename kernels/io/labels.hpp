// Conversion of labels of two classes to signs, in one pass.
#pragma once
#include <cstdint>

namespace linsep {

struct TwoClasses {
    std::int64_t low, high;  // first rows with the smaller and the larger label; -1 unless there are exactly two labels
};

// sign_i = +1 where y_i is the larger of the two labels, -1 where it is the smaller. NaN is not a label.
template <class T>
TwoClasses find_two(const T* y, std::int64_t n, double* sign) {
    std::int64_t other = 1;
    while (other < n && y[other] == y[0]) ++other;
    if (other >= n) return {-1, -1};
    const T first = y[0], second = y[other];
    const bool rising = first < second;
    const double of_first = rising ? -1.0 : 1.0;
    bool more = false;
    for (std::int64_t i = 0; i < n; ++i) {
        const bool is_first = y[i] == first;
        more |= !is_first & !(y[i] == second);
        sign[i] = is_first ? of_first : -of_first;
    }
    if (more) return {-1, -1};
    return rising ? TwoClasses{0, other} : TwoClasses{other, 0};
}

}  // namespace linsep
