#pragma once

#include <cstdint>
#include <vector>

#include "stretto/base/range.h"
#include "stretto/comm/group.h"

// Sums whose rounding depends only on the number of terms. They form a binary tree: the sum of n terms is the
// sum of the first n / 2 (rounded down) plus the sum of the others. If n terms are divided evenly among 2, 4,
// 8, ... ranks, in order, the sum of the ranks' sums is the sum of all terms.
namespace stretto::parallel {

// Adds the rows of `rows`, [n, ...], n >= 1. Destroys them.
Tensor sum_rows_in_fixed_order(const Tensor& rows);

// Sums `values` over all ranks in place, with the same bits on each. `group` has 1, 2, 4, 8, ... ranks and
// must outlive the Work. Collective; so is waiting, in the order of the calls.
Work sum_in_fixed_order(Group& group, const Tensor& values);

// Sums terms that appear one after the other in a buffer. It stores up to log2(terms) partial sums, rounded
// up, each as large as the buffer.
class FixedOrderSum {
 public:
  // `buffer`: [elements], zeros before each term; keeps referring to it.
  FixedOrderSum(Tensor buffer, int64_t terms) : buffer_(std::move(buffer)), terms_(terms) {}

  // Adds the term in the buffer, which must not be the last one, and zeroes the buffer.
  void take();
  // Adds the sum of all earlier terms to a range of the last term.
  void add_taken(const Range& range);
  // Drops the terms so far.
  void restart();

 private:
  Tensor buffer_;
  int64_t terms_;
  int64_t taken_ = 0;
  // Memory for the sums; the first `open_` are in use, each for earlier terms than the next one.
  std::vector<Tensor> sums_;
  size_t open_ = 0;
};

}  // namespace stretto::parallel
