// Dense rows that are mostly zeros (pictures, counts, categories), without their zeros.
//
// Ascent reads the rows many times. If a sample of them has few enough numbers other than 0 they are copied once, to CSR,
// in two reads; each epoch then takes the time of the numbers that are left.
#pragma once
#include "dual/large_work.hpp"

namespace linsep {

class Compressed {
  public:
    Compressed(const Rows& from, const LargeWork& parts);
    Compressed(const Compressed&) = delete;
    Compressed& operator=(const Compressed&) = delete;

    // the copy, or the rows as they were given
    const Rows& rows() const { return rows_; }

  private:
    template <class T>
    void copy(const LargeWork& parts);

    Rows rows_;
    Room<char> values_;
    Room<std::int32_t> indices_;
    std::vector<std::int64_t> starts_;
};

// Share of the numbers other than 0 in some rows from everywhere, if it is so small that a copy pays; else 1.
double kept_share(const Rows& rows);

}  // namespace linsep
