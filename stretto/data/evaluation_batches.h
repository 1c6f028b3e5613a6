#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "stretto/data/global_batches.h"

namespace stretto::data {

// Divides a whole dataset, each sample once over all ranks, into micro-batches of at most batch_size samples
// per rank. The result equals that of split_batch() for one global batch of all samples, longest first, but
// is computed for a million samples at a time, with no memory for the others. No communication.
class EvaluationBatches {
 public:
  // `dataset` must outlive this object. Reads all lengths once. Throws ConfigError unless world_size and
  // batch_size are >= 1 and 0 <= rank < world_size.
  EvaluationBatches(const Dataset& dataset, int world_size, int rank, int64_t batch_size);

  int64_t micro_batches() const { return micro_batches_; }  // total number per rank

  // The next micro-batches and their samples; nullopt after the last. Reads all lengths once.
  std::optional<GlobalBatch> next();

 private:
  int64_t begin_of(int64_t micro_batch) const;
  std::vector<int64_t> in_order(int64_t begin, int64_t end) const;

  const SampleLengths lengths_;
  const int64_t micro_batches_;
  std::map<int32_t, int64_t> first_;  // the index in the order of the first sample of each length that occurs
  Dealer dealer_;
  int64_t done_ = 0;  // the number of micro-batches returned
};

}  // namespace stretto::data
