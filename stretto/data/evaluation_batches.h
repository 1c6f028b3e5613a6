#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "stretto/data/global_batches.h"

namespace stretto::data {

// A whole dataset, each sample once over all ranks, in micro-batches of at most batch_size samples per rank.
// They are those into which split_batch() cuts one global batch of all samples, longest first; but they are
// made a million samples at a time, and nothing is kept for the others. A pure function: no communication.
class EvaluationBatches {
 public:
  // `dataset` must outlive it. Reads all lengths once. Throws ConfigError unless world_size and batch_size
  // are >= 1 and 0 <= rank < world_size.
  EvaluationBatches(const Dataset& dataset, int world_size, int rank, int64_t batch_size);

  int64_t micro_batches() const { return micro_batches_; }  // of each rank, in total

  // The next micro-batches, and the samples that they divide; nullopt after the last. Reads all lengths once.
  std::optional<GlobalBatch> next();

 private:
  int64_t begin_of(int64_t micro_batch) const;
  std::vector<int64_t> in_order(int64_t begin, int64_t end) const;

  const SampleLengths lengths_;
  const int64_t micro_batches_;
  std::map<int32_t, int64_t> first_;  // for each length that occurs, its first place in the order
  Dealer dealer_;
  int64_t done_ = 0;  // micro-batches
};

}  // namespace stretto::data
