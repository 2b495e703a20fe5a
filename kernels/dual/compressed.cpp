#include "dual/compressed.hpp"

#include <algorithm>

namespace linsep {
namespace {

using i64 = std::int64_t;

constexpr double kSparse = 0.25;  // fraction of nonzeros up to which a copy pays off,
constexpr i64 kLong = 64;         // for at least this many features
constexpr i64 kMany = 100'000;    // and this many entries
constexpr i64 kSample = 64;       // number of sample rows

template <class T>
i64 others(const T* row, i64 d) {
    i64 count = 0;
    for (i64 j = 0; j < d; ++j) count += row[j] != T{0};
    return count;
}

}  // namespace

double kept_share(const Rows& rows) {
    const bool single = rows.store == Store::dense32;
    if (!(single || rows.store == Store::dense64) || rows.d < kLong || rows.n < kMany / rows.d) return 1.0;
    const i64 count = std::min(rows.n, kSample);
    i64 found = 0;
    for (i64 k = 0; k < count; ++k) {
        const i64 at = rows.n / count * k * rows.d;
        found += single ? others(static_cast<const float*>(rows.values) + at, rows.d)
                        : others(static_cast<const double*>(rows.values) + at, rows.d);
    }
    const double share = static_cast<double>(found) / static_cast<double>(count * rows.d);
    return share <= kSparse ? share : 1.0;
}

Compressed::Compressed(const Rows& from, const LargeWork& parts) : rows_(from) {
    if (kept_share(from) == 1.0) return;
    if (from.store == Store::dense64)
        copy<double>(parts);
    else
        copy<float>(parts);
}

template <class T>
void Compressed::copy(const LargeWork& parts) {
    const i64 n = rows_.n, d = rows_.d;
    const T* X = static_cast<const T*>(rows_.values);
    const double entries = static_cast<double>(n) * static_cast<double>(d);
    starts_.resize(static_cast<std::size_t>(n) + 1);
    i64* start = starts_.data();
    parts.each(n, entries, [&](i64 lo, i64 hi, int) {
        for (i64 i = lo; i < hi; ++i) start[i + 1] = others(X + i * d, d);
    });
    for (i64 i = 0; i < n; ++i) start[i + 1] += start[i];
    const std::size_t stored = static_cast<std::size_t>(start[n]);
    values_.resize(stored * sizeof(T));
    indices_.resize(stored);
    T* values = reinterpret_cast<T*>(values_.data());
    std::int32_t* indices = indices_.data();
    parts.each(n, entries, [&](i64 lo, i64 hi, int) {
        for (i64 i = lo; i < hi; ++i) {
            i64 at = start[i];
            const i64 end = start[i + 1];
            for (i64 j = 0; at < end; ++j) {  // branch-free: a zero is written too, but overwritten by the next entry
                values[at] = X[i * d + j];
                indices[at] = static_cast<std::int32_t>(j);
                at += X[i * d + j] != T{0};
            }
        }
    });
    rows_ = {sizeof(T) == 8 ? Store::csr64 : Store::csr32, n, d, values, indices, start};
}

}  // namespace linsep
