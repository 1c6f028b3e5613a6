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
  int64_t max_tokens = 0;         // > 0: maximum tokens per batch, replaces global_batch_size
  bool shuffle = true;            // false: dataset order, no grouping by length
  bool group_by_length = true;    // for padded batches
  int64_t window = 50;            // batches per window of samples that are sorted by length
};

// Cuts a sequence of samples into batches: a batch takes samples until the next would exceed
// options.global_batch_size or max_tokens.
class BatchCutter {
 public:
  explicit BatchCutter(const SamplerOptions& options);

  // Adds a sample of `length` tokens. Returns whether it begins a new batch; false for the first sample.
  bool cuts_before(int64_t length);

 private:
  int64_t most_samples_, most_tokens_;
  int64_t samples_ = 0, tokens_ = 0;  // of the batch so far
};

// Determines the samples of each global batch, as a function of (seed, epoch, index, global size or token
// budget) and of the lengths, independent of the ranks and of earlier calls.
//
// The order of an epoch is a pseudo-random permutation, divided into windows of `window` batches. Grouped by
// length, the samples of a window are sorted and divided into batches, so that a batch's samples have similar
// lengths; then the window's batches are shuffled. Only the last batch of an epoch may be smaller than
// global_batch_size. Under a token budget a window has the number of samples that `window` batches contain on
// average, and its last, shortest batch may lie anywhere in the window (ungrouped: at its end).
//
// Thread-safe.
class Sampler {
 public:
  // Throws ConfigError for options out of range, DataError for a sample longer than max_tokens.
  Sampler(SampleLengths lengths, const SamplerOptions& options);

  // The number of batches of an epoch. O(1); under a token budget O(samples) once per epoch.
  int64_t batches(int64_t epoch) const;

  // Dataset indices of one global batch. Throws Error unless 0 <= index < batches(epoch). O(window) for any
  // `index`; under a token budget see batches().
  std::vector<int64_t> batch(int64_t epoch, int64_t index) const;

  // Finds the batch that contains sample number `sample` of the epoch, counted in the order of the batches,
  // and the number of samples before that batch. REQUIRES: 0 <= sample < samples of the dataset, or 0 for an
  // empty one. Cost: see batch().
  struct Found {
    int64_t batch = 0;
    int64_t samples_before = 0;
  };
  Found find(int64_t epoch, int64_t sample) const;

  // Calls take(dataset index) for the epoch's samples from number `sample` on, in the order of the batches,
  // until it returns false. REQUIRES: see find(). Cost: find(), and a batch() per batch.
  void each_from(int64_t epoch, int64_t sample, const std::function<bool(int64_t)>& take) const;

 private:
  using Batches = std::vector<std::vector<int64_t>>;
  struct Window {
    int64_t epoch = -1;
    int64_t number = -1;
    Batches batches;
  };
  // The index of the first batch of each window of an epoch, and at the end the number of batches.
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

  // A cache of the last results.
  mutable std::mutex mutex_;
  mutable Window window_;
  mutable Table table_;
};

}  // namespace stretto::data
