#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace stretto::trainer {

// What a rank has called when it steps an optimizer in manual optimization.
struct RankCalls {
  int64_t optimizer = 0;  // that it steps
  int64_t backwards = 0;  // since the last step, over its micro-batches
  bool loss_is_finite = true;
};

// Appends a row for each rank of the job to numbers that ranks sum; this rank fills in its own.
void append_calls(std::vector<double>& numbers, const RankCalls& own, int rank, int world_size);

// Removes the rows from the sums. Returns those of the ranks that took part, by their number in the job.
std::map<int, RankCalls> take_calls(std::vector<double>& sums, int world_size);

// The ranks by the value of a member.
template <class T>
std::map<T, std::vector<int>> ranks_by(T RankCalls::*member, const std::map<int, RankCalls>& calls) {
  std::map<T, std::vector<int>> ranks;
  for (const auto& [rank, of_rank] : calls) ranks[of_rank.*member].push_back(rank);
  return ranks;
}

}  // namespace stretto::trainer
