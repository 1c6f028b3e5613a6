#include "stretto/trainer/run/rank_calls.h"

#include <algorithm>

namespace stretto::trainer {
namespace {

constexpr int columns = 4;  // whether the rank takes part, and the members of RankCalls

}  // namespace

void append_calls(std::vector<double>& numbers, const RankCalls& own, int rank, int world_size) {
  const auto row = std::ssize(numbers) + columns * rank;
  numbers.resize(numbers.size() + static_cast<size_t>(columns * world_size));
  const double values[columns] = {1, static_cast<double>(own.optimizer), static_cast<double>(own.backwards),
                                  own.loss_is_finite ? 1.0 : 0.0};
  std::ranges::copy(values, numbers.begin() + row);
}

std::map<int, RankCalls> take_calls(std::vector<double>& sums, int world_size) {
  const auto first = sums.end() - columns * world_size;
  std::map<int, RankCalls> calls;
  for (int rank = 0; rank < world_size; ++rank) {
    const auto row = first + columns * rank;
    if (row[0] == 0) continue;
    calls[rank] = {.optimizer = static_cast<int64_t>(row[1]),
                   .backwards = static_cast<int64_t>(row[2]),
                   .loss_is_finite = row[3] != 0};
  }
  sums.erase(first, sums.end());
  return calls;
}

}  // namespace stretto::trainer
