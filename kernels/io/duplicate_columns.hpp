// Detection of duplicate column indices in the rows of a CSR matrix, without sorting the rows, which would cost ten
// times as much.
#pragma once
#include <cstdint>
#include <vector>

namespace linsep {

// Return whether a row has a duplicate index. The caller has checked that starts do not decrease and that indices lie
// in 0 .. d-1.
template <class I>
bool repeats(const I* indices, const I* starts, std::int64_t n, std::int64_t d) {
    std::vector<std::int32_t> row(static_cast<std::size_t>(d), -1);  // the last row with an entry in each column
    for (std::int64_t i = 0; i < n; ++i) {
        const auto now = static_cast<std::int32_t>(i);
        bool twice = false;
        for (I p = starts[i]; p < starts[i + 1]; ++p) {
            std::int32_t& seen = row[static_cast<std::size_t>(indices[p])];
            twice |= seen == now;
            seen = now;
        }
        if (twice) return true;
    }
    return false;
}

}  // namespace linsep
