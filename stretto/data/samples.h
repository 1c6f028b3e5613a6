#pragma once

#include <map>

#include "stretto/data/dataset.h"

namespace stretto::data {

// What differs in size along a dimension is filled up to the largest with this: the value of the tensor's name, else 0.
// -100 is the label that losses do not look at.
using PadValues = std::map<std::string, double>;

// Tensors of one name put together along a new first dimension; those of different sizes are padded at the end of each
// dimension that differs. Samples that need to tell padding from content bring a tensor of ones (a mask), which is padded
// with zeros. Throws DataError by name and sample where samples lack a tensor, or dimensions or types differ.
Batch pad_and_stack(std::span<const Sample> samples, const PadValues& pad_values = {{"labels", -100}});

// A dataset of a user's own that gives samples one by one; how they become a batch is decided by who trains on them
// (Module::collate), or is pad_and_stack.
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
