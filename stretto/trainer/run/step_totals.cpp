#include "stretto/trainer/run/step_totals.h"

#include <algorithm>

#include "stretto/parallel/fixed_order.h"

namespace stretto::trainer {
namespace {

constexpr size_t single_values = 4;

}  // namespace

StepTotals::Packed StepTotals::pack() const {
  Packed numbers = {loss, count, logged ? 1.0 : 0, logged_in_epoch ? 1.0 : 0};
  std::ranges::copy(requests.flags(), std::back_inserter(numbers));
  numbers.insert(numbers.end(), losses.begin(), losses.end());
  numbers.insert(numbers.end(), counts.begin(), counts.end());
  return numbers;
}

StepTotals StepTotals::unpack(const Packed& sums) {
  StepTotals totals = {.loss = sums[0],
                       .count = sums[1],
                       .logged = sums[2] > 0,
                       .logged_in_epoch = sums[3] > 0,
                       .requests = Requests::of(&sums[single_values])};
  const auto first = sums.begin() + single_values + Requests::count;
  const auto micro_batches = (sums.end() - first) / 2;
  if (micro_batches == 0) return totals;
  totals.losses.assign(first, first + micro_batches);
  totals.counts.assign(first + micro_batches, sums.end());
  totals.loss = parallel::sum_in_fixed_order(totals.losses);
  totals.count = parallel::sum_in_fixed_order(totals.counts);
  return totals;
}

}  // namespace stretto::trainer
