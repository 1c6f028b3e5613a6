#pragma once

#include <cstdint>
#include <vector>

#include "stretto/base/range.h"
#include "stretto/data/dataset.h"
#include "stretto/data/sampler.h"
#include "stretto/data/split.h"

namespace stretto::data {

// How a dataset is divided into global batches, and these into micro-batches of a rank.
struct BatchOptions {
  uint64_t seed = 0;
  bool shuffle = true;
  int64_t global_batch_size = 1;  // samples per global batch; not used under max_tokens
  int64_t max_tokens = 0;         // > 0: maximum tokens per rank and micro-batch, on average over the ranks
  int64_t batch_size = 0;         // samples per rank and micro-batch at most; 0: see below
  int64_t grad_accumulation_steps = 1;  // micro-batches per global batch if batch_size is 0
  // > 0: a global batch has so many micro-batches, which do not depend on the ranks; each rank takes
  // consecutive ones (part_range()). Ranks with fewer than others begin with empty ones, so that all have as
  // many.
  int64_t same_parts = 0;
  int world_size = 1;
  int rank = 0;
};

struct GlobalBatch {
  std::vector<int64_t> samples;  // dataset indices
  MicroBatches micro_batches;    // this rank's part; a micro-batch may be empty
  // The number of parts over all ranks if BatchOptions::same_parts is set, and which of them the last ones of
  // `micro_batches` are.
  int64_t parts = 0;
  Range own_parts = {0, 0};

  // Whether every rank has a sample in every micro-batch.
  bool reaches_all_ranks(int world_size) const {
    const bool equal_numbers = parts == 0 || parts == std::ssize(micro_batches) * world_size;
    return equal_numbers && std::ssize(samples) >= std::ssize(micro_batches) * world_size;
  }
};

// The global batches of a dataset with this rank's part of each: combines Sampler and split_batch(). Batches
// of a dataset that pads consist of samples of similar length, others of random samples. Thread-safe.
class GlobalBatches {
 public:
  // `dataset` must outlive this object. Throws ConfigError for options out of range, DataError for a sample
  // that exceeds the token budget of a global batch.
  GlobalBatches(const Dataset& dataset, const BatchOptions& options);

  const Dataset& dataset() const { return dataset_; }
  const SamplerOptions& order() const {
    return order_;
  }  // the options that determine the order of the samples
  const Sampler& sampler() const { return sampler_; }

  int64_t batches(int64_t epoch) const { return sampler_.batches(epoch); }
  GlobalBatch batch(int64_t epoch, int64_t index) const { return split(sampler_.batch(epoch, index)); }

  // This rank's part of a batch that the caller has assembled.
  GlobalBatch split(std::vector<int64_t> samples) const;

 private:
  void take_same_parts(GlobalBatch& batch) const;

  const Dataset& dataset_;
  BatchOptions options_;
  SamplerOptions order_;
  Sampler sampler_;
};

}  // namespace stretto::data
