#pragma once

#include <map>

#include "stretto/data/dataset.h"

namespace stretto::data {

// The value that pads a tensor, by the tensor's name; 0 for others. Losses ignore the label -100.
using PadValues = std::map<std::string, double>;

// Stacks the tensors of each name along a new first dimension; tensors of different sizes are padded at the
// end of each dimension that differs. Samples that need to distinguish padding from content provide a tensor
// of ones (a mask), which is padded with zeros. Throws DataError, naming tensor and sample, if samples lack a
// tensor, or if dimensions or dtypes differ.
Batch pad_and_stack(std::span<const Sample> samples, const PadValues& pad_values = {{"labels", -100}});

// Base class for users' datasets of single samples, which Module::collate makes into batches, by default with
// pad_and_stack.
class SampleDataset : public Dataset {
 public:
  // `lengths`: tokens per sample, or any other measure of its cost.
  explicit SampleDataset(std::vector<int32_t> lengths)
      : size_(std::ssize(lengths)), lengths_(std::move(lengths)) {}
  // All samples have the same cost unless length_of is overridden.
  explicit SampleDataset(int64_t size) : size_(size) {}

  // The sample at `index` in [0, size()), on CPU. Must be thread-safe and return the same sample on every
  // call.
  virtual Sample sample(int64_t index) const = 0;

  int64_t size() const final { return size_; }
  int32_t length_of(int64_t index) const override {
    return lengths_.empty() ? 1 : lengths_.at(static_cast<size_t>(index));
  }
  bool pads() const final { return true; }
  Batch pack(std::span<const int64_t> samples) const final;
  Batch pack_with(std::span<const int64_t> samples, const Collate& collate) const final;

 private:
  int64_t size_;
  std::vector<int32_t> lengths_;  // empty: 1 each
};

}  // namespace stretto::data
