#pragma once

#include <vector>

#include "stretto/trainer/api/step_report.h"

namespace stretto::trainer {

// The values that the ranks of a step sum in one reduction: one rank's before it, those of all ranks
// afterwards.
struct StepTotals {
  double loss = 0;               // sum over the samples or tokens of `count`
  double count = 0;              // what the loss is divided by
  bool logged = false;           // a rank has values for the next record
  bool logged_in_epoch = false;  // a rank has values for the epoch's end
  Requests requests = {};        // of any rank

  // If sums must not depend on the ranks (parallel/fixed_order.h): the loss and count of each micro-batch of
  // the step over all ranks, zeros for those of other ranks.
  std::vector<double> losses = {}, counts = {};

  // These values as numbers, to be summed over the ranks; unpack() takes the sums.
  using Packed = std::vector<double>;
  Packed pack() const;
  static StepTotals unpack(const Packed& sums);
};

}  // namespace stretto::trainer
