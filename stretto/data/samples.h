#pragma once

#include <map>

#include "stretto/data/dataset.h"

namespace stretto::data {

// The value that pads a tensor, by the tensor's name; 0 for others. Losses ignore the label -100.
using PadValues = std::map<std::string, double>;

// Stacks the tensors of each name along a new first dimension; those of different sizes are padded at the end of each
// dimension that differs. Samples that need to distinguish padding from content provide a tensor of ones (a mask), which is
// padded with zeros. Throws DataError by name and sample where samples lack a tensor, or dimensions or types differ.
Batch pad_and_stack(std::span<const Sample> samples, const PadValues& pad_values = {{"labels", -100}});

// Base class for users' datasets that give samples one by one. Module::collate makes batches of them, by default with
// pad_and_stack.
class SampleDataset : public Dataset {
 public:
  // `lengths` in tokens, or whatever measures a sample's cost.
  explicit SampleDataset(std::vector<int32_t> lengths) : lengths_(std::move(lengths)) {}
  // Samples alike in cost.
  explicit SampleDataset(int64_t size) : lengths_(static_cast<size_t>(size), 1) {}

  // The sample at `index` in [0, size()), on CPU. Thread-safe, and the same whenever it is asked for.
  virtual Sample sample(int64_t index) const = 0;

  int64_t size() const final { return std::ssize(lengths_); }
  std::span<const int32_t> lengths() const final { return lengths_; }
  bool pads() const final { return true; }
  Batch pack(std::span<const int64_t> samples) const final;
  Batch pack_with(std::span<const int64_t> samples, const Collate& collate) const final;

 private:
  std::vector<int32_t> lengths_;
};

}  // namespace stretto::data
