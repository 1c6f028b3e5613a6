#pragma once

#include <array>

#include "stretto/trainer/api/step_report.h"

namespace stretto::trainer {

// What the ranks of a step sum in one reduction: first those of one rank, afterwards those of all ranks.
struct StepTotals {
  double loss = 0;               // sum over the samples or tokens of `count`
  double count = 0;              // what the loss is divided by
  bool logged = false;           // a rank has values for the next record
  bool logged_in_epoch = false;  // a rank has values for the epoch's end
  Requests requests = {};        // of any rank

  // A number for each of the above, to be summed over the ranks; unpack() takes the sums.
  using Packed = std::array<double, 4 + Requests::count>;
  Packed pack() const;
  static StepTotals unpack(const Packed& sums);
};

}  // namespace stretto::trainer
