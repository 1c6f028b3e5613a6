#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "stretto/data/sample_lengths.h"

namespace stretto::data {

// The dataset indices of a rank's samples per micro-batch; a list may be empty.
using MicroBatches = std::vector<std::vector<int64_t>>;

// The number of micro-batches for `samples` if each of world_size ranks takes at most batch_size per
// micro-batch: the accumulation steps of a full global batch, fewer for the last one of an epoch. Throws
// ConfigError unless both are >= 1.
int64_t count_micro_batches(int64_t samples, int world_size, int64_t batch_size);

// Distributes samples to ranks in rounds of one per rank, longest first; in a round, the longest sample goes
// to the rank with the fewest tokens. The tokens of two ranks never differ by more than the longest sample of
// one round.
class Dealer {
 public:
  // Throws ConfigError unless 0 <= rank < world_size.
  Dealer(int world_size, int rank);

  // The part of `rank` in the next micro-batch. `samples` are in descending order of length.
  std::vector<int64_t> deal(std::span<const int64_t> samples, const SampleLengths& lengths);

 private:
  void start_round();

  size_t rank_;
  std::vector<int64_t> tokens_;  // tokens per rank so far
  std::vector<size_t> order_;    // ranks in the order in which they receive in this round
};

// The part of `rank` in a global batch. The batch is sorted by length, longest first, and divided into
// `micro_batches` whose counts differ by at most one: with samples of similar length for padded batches, or
// else with similar sums of lengths. Each is divided among the ranks so that counts per micro-batch differ by
// at most one, and the tokens up to any micro-batch by at most one longest sample. The parts of all ranks
// contain each sample of the batch once, and every rank has the same number of micro-batches. No
// communication. `lengths`: of the dataset. Throws ConfigError unless 0 <= rank < world_size and
// micro_batches >= 1 (0 for an empty batch).
MicroBatches split_batch(std::span<const int64_t> batch, const SampleLengths& lengths, int world_size,
                         int rank, int64_t micro_batches, bool alike_in_length = true);

}  // namespace stretto::data
