#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "stretto/data/sample_lengths.h"

namespace stretto::data {

struct SamplerOptions {
  uint64_t seed = 0;
  int64_t global_batch_size = 1;  // samples per batch, over all ranks and accumulation steps
  int64_t max_tokens = 0;         // > 0: tokens per batch at most, in place of global_batch_size
  bool shuffle = true;            // false: dataset order, no grouping by length
  bool group_by_length = true;    // for batches that are padded
  int64_t window = 50;            // batches that are cut from samples sorted by length
};

// Cuts a sequence of samples into batches: a batch takes samples until the next would exceed
// options.global_batch_size or max_tokens.
class BatchCutter {
 public:
  explicit BatchCutter(const SamplerOptions& options);

  // Whether the next sample, of `length` tokens, begins another batch. The first begins none.
  bool cuts_before(int64_t length);

 private:
  int64_t most_samples_, most_tokens_;
  int64_t samples_ = 0, tokens_ = 0;  // of the batch so far
};

// Which samples make up each global batch: a function of (seed, epoch, index, global size or token budget)
// and of the lengths, never of ranks or of what was asked before.
//
// The epoch's order is a pseudo-random permutation, cut into windows of `window` batches. Grouped by length, the
// samples of a window are sorted and cut into batches, so that a batch's samples have similar lengths; then the
// window's batches are shuffled. A batch smaller than global_batch_size occurs only as the last of an epoch. Under a
// token budget a window has as many samples as `window` batches hold on average, and its last, shortest batch may lie
// anywhere in the window (ungrouped: at its end).
//
// Thread-safe.
class Sampler {
 public:
  // Throws ConfigError for options out of range, DataError for a sample longer than max_tokens.
  Sampler(SampleLengths lengths, const SamplerOptions& options);

  // Batches of an epoch. O(1); under a token budget O(samples) once per epoch.
  int64_t batches(int64_t epoch) const;

  // Dataset indices of one global batch. Throws Error unless 0 <= index < batches(epoch). O(window) wherever
  // `index` lies; under a token budget see batches().
  std::vector<int64_t> batch(int64_t epoch, int64_t index) const;

  // The batch that holds the epoch's sample number `sample`, counted in the order of the batches, and how many samples
  // come before that batch. REQUIRES: 0 <= sample < samples of the dataset, or 0 for an empty one. Cost as batch().
  struct Found {
    int64_t batch = 0;
    int64_t samples_before = 0;
  };
  Found find(int64_t epoch, int64_t sample) const;

  // Calls take(dataset index) for the epoch's samples from number `sample` on, in the order of the batches,
  // until it returns false. REQUIRES and costs as find(), and a batch() per batch.
  void each_from(int64_t epoch, int64_t sample, const std::function<bool(int64_t)>& take) const;

 private:
  using Batches = std::vector<std::vector<int64_t>>;
  struct Window {
    int64_t epoch = -1;
    int64_t number = -1;
    Batches batches;
  };
  // For each window of an epoch the index of its first batch, and at the end the number of batches.
  struct Table {
    int64_t epoch = -1;
    std::vector<int64_t> first_batch;
  };

  int64_t size() const { return lengths_.size; }
  int64_t length(int64_t sample) const { return lengths_.of(sample); }
  void check_budget();
  std::vector<int64_t> window_samples(int64_t epoch, int64_t number) const;
  Batches cut(const std::vector<int64_t>& samples) const;
  void shuffle_batches(int64_t epoch, int64_t number, Batches& batches) const;
  const Batches& window_batches(int64_t epoch, int64_t number) const;
  const std::vector<int64_t>& first_batches(int64_t epoch) const;

  SampleLengths lengths_;
  SamplerOptions options_;
  int64_t window_size_ = 0;  // samples
  int64_t windows_ = 0;      // of an epoch

  // What was computed last; results don't depend on it.
  mutable std::mutex mutex_;
  mutable Window window_;
  mutable Table table_;
};

}  // namespace stretto::data
