#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "stretto/data/sample_lengths.h"

namespace stretto::data {

// For each micro-batch the dataset indices that one rank works on; an empty list where it has none.
using MicroBatches = std::vector<std::vector<int64_t>>;

// Micro-batches that `samples` need when each of world_size ranks takes at most batch_size per micro-batch: the
// accumulation steps of a whole global batch, fewer for the last of an epoch. Throws ConfigError unless both are >= 1.
int64_t count_micro_batches(int64_t samples, int world_size, int64_t batch_size);

// Where part number `part` begins if `size` samples are cut into `parts` whose counts differ by at most one,
// the smaller ones first: samples are ordered longest first, so the extra ones are not the longest. `part` ==
// `parts` gives `size`.
int64_t begin_of_part(int64_t size, int64_t parts, int64_t part);

// Deals samples to ranks in rounds of one per rank, longest first; in a round the longest goes to the rank
// that has the fewest tokens. The tokens of two ranks never differ by more than the longest sample of one
// round.
class Dealer {
 public:
  // Throws ConfigError unless 0 <= rank < world_size.
  Dealer(int world_size, int rank);

  // The part of `rank` in the next micro-batch. `samples` are in descending order of length.
  std::vector<int64_t> deal(std::span<const int64_t> samples, const SampleLengths& lengths);

 private:
  void start_round();

  size_t rank_;
  std::vector<int64_t> tokens_;  // dealt to each rank so far
  std::vector<size_t> order_;    // ranks in the order in which they receive in this round
};

// The part of `rank` in a global batch. The batch is sorted by length, longest first, and cut into `micro_batches` whose
// counts differ by at most one: with samples of similar length, for batches that are padded, or with similar sums of
// lengths. Each is divided among the ranks so that counts per micro-batch differ by at most one, and tokens up to any micro-batch by no
// more than one longest sample. The parts of all ranks are the batch, each sample once, and every rank has the same number
// of micro-batches. A pure function: no communication. lengths: those of the dataset. Throws
// ConfigError unless 0 <= rank < world_size and micro_batches >= 1 (0 for an empty batch).
MicroBatches split_batch(std::span<const int64_t> batch, const SampleLengths& lengths, int world_size,
                         int rank, int64_t micro_batches, bool alike_in_length = true);

}  // namespace stretto::data
