// CSR copy of dense rows that are mostly zeros (images, counts, categories).
//
// Ascent reads the rows many times. If a sample of them has few enough nonzeros, they are copied once to CSR, in two
// passes; the time of an epoch is then proportional to the number of nonzeros.
#pragma once
#include "dual/large_work.hpp"

namespace linsep {

class Compressed {
  public:
    Compressed(const Rows& from, const LargeWork& parts);
    Compressed(const Compressed&) = delete;
    Compressed& operator=(const Compressed&) = delete;

    // the copy, or the original rows if none was made
    const Rows& rows() const { return rows_; }

  private:
    template <class T>
    void copy(const LargeWork& parts);

    Rows rows_;
    Buffer<char> values_;
    Buffer<std::int32_t> indices_;
    std::vector<std::int64_t> starts_;
};

// Fraction of nonzeros in evenly spaced sample rows if it is small enough for a copy to pay off, otherwise 1.
double kept_share(const Rows& rows);

}  // namespace linsep
