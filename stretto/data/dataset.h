#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/base/lazy.h"
#include "stretto/tensor/batch.h"

namespace stretto::data {

struct SampleLengths;  // sample_lengths.h

// A single sample: tensors by name, without a batch dimension.
using Sample = std::map<std::string, Tensor>;

// Makes a batch of samples: its tensors only; the caller sets sample ids and count.
using Collate = std::function<Batch(std::span<const Sample>)>;

// A collection of samples with known lengths, which pack() makes into batches. The index of a sample is its
// identity for the sampling order, dropout and evaluation.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  // The number of tokens of the sample at `index`, or any other measure of its cost, >= 0, by which ranks are
  // balanced. Thread-safe.
  virtual int32_t length_of(int64_t index) const = 0;

  // The sum of all lengths. The default adds them up.
  virtual int64_t total_length() const;

  // The length of all samples except for shorter ones, for a dataset whose fingerprint() covers the lengths;
  // 0 for other datasets. If it is set, no time is spent per sample, neither at the start of a run nor when
  // it is saved.
  virtual int32_t block_size() const { return 0; }

  // Identifies the contents: equal for equal data on every rank and in every run. A run is resumed only on
  // data with the same fingerprint. The default is a hash of all tensors, for which every sample is packed
  // once per process. Override it if the contents can be identified at lower cost, or if samples are drawn at
  // random.
  virtual std::string fingerprint() const;

  // Whether batches are padded to their longest sample: batches then consist of samples of similar length.
  virtual bool pads() const { return false; }

  // Whether training takes the samples in their order, regardless of training.shuffle.
  virtual bool is_ordered() const { return false; }

  // Packs samples into one batch on CPU. An empty list gives a batch without tensors and with count 0.
  // Thread-safe.
  virtual Batch pack(std::span<const int64_t> samples) const = 0;

  // Like pack; a dataset of single samples makes the batch with `collate`.
  virtual Batch pack_with(std::span<const int64_t> samples, const Collate&) const { return pack(samples); }

 private:
  mutable Lazy<std::string> fingerprint_of_tensors_;
};

// The lengths of all samples. `dataset` must outlive the result.
SampleLengths lengths_of(const Dataset& dataset);

// The prefix of a fingerprint that is a hash of all tensors.
inline constexpr std::string_view hash_of_tensors = "tensors-";

}  // namespace stretto::data
