#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "stretto/base/range.h"
#include "stretto/comm/group.h"

// Sums whose rounding depends only on the number of terms. They form a binary tree: the sum of n terms is the
// sum of the first n / 2 (rounded down) plus the sum of the others. Rank r of n has the terms
// part_range(terms, n, r). It adds the largest subtrees that lie entirely in its terms; their roots are
// exchanged, and the rest of the tree is added in the same order wherever its terms are. If the number of
// terms is a multiple of 1, 2, 4, 8, ... ranks, each rank has one such subtree.
namespace stretto::parallel {

// The largest subtrees of the tree over `terms` that lie in `part` of them, in order.
std::vector<Range> subtrees(int64_t terms, const Range& part);

// Adds the rows of `rows`, [n, ...], n >= 1. Destroys them.
Tensor sum_rows_in_fixed_order(const Tensor& rows);
double sum_in_fixed_order(std::vector<double> terms);

// Sums `terms` terms over all ranks. `roots`: the sum of each subtree of this rank's terms, of equal shapes.
// The result is in the last one, with the same bits on each rank. REQUIRES: terms >= group.size(). `group`
// must outlive the Work. Collective; so is waiting, in the order of the calls.
Work sum_in_fixed_order(Group& group, int64_t terms, const std::vector<Tensor>& roots);

// Sums this rank's terms, which appear one after the other in a buffer.
class FixedOrderSum {
 public:
  // `buffer`: [elements], zeros before each term; keeps referring to it. The first passes of a rank with
  // fewer terms than others add nothing, so that all ranks have as many.
  FixedOrderSum(Tensor buffer, int64_t terms, int ranks, int rank);

  // Adds the term in the buffer, which must not be the last one, and zeroes the buffer.
  void take();
  // Returns the sums of the subtrees, restricted to a range of the elements. Call it once for each range.
  // REQUIRES: the buffer has the last term.
  std::vector<Tensor> roots(const Range& range);
  // Drops the terms so far.
  void restart() {
    taken_ = -idle_passes_;
    open_ = 0;
  }

  // The most sums, each as large as the buffer, that are stored at the same time.
  int64_t stored() const;

 private:
  int sums_completed_by(int64_t term) const;

  Tensor buffer_;
  int64_t terms_;
  Range own_;
  int64_t idle_passes_;
  int64_t taken_;
  // Memory for the sums; the first `open_` are in use, each for earlier terms than the next one.
  std::vector<Tensor> sums_;
  size_t open_ = 0;
};

}  // namespace stretto::parallel
