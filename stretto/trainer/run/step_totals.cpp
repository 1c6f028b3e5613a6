#include "stretto/trainer/run/step_totals.h"

#include <algorithm>

namespace stretto::trainer {

StepTotals::Packed StepTotals::pack() const {
  Packed numbers = {loss, count, logged ? 1.0 : 0, logged_in_epoch ? 1.0 : 0};
  std::ranges::copy(requests.flags(), numbers.end() - Requests::count);
  return numbers;
}

StepTotals StepTotals::unpack(const Packed& sums) {
  return {.loss = sums[0],
          .count = sums[1],
          .logged = sums[2] > 0,
          .logged_in_epoch = sums[3] > 0,
          .requests = Requests::of(&sums[sums.size() - Requests::count])};
}

}  // namespace stretto::trainer
