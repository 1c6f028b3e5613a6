#pragma once

#include <cstdint>
#include <span>

#include "stretto/tensor/batch.h"

namespace stretto::data {

// Samples that can be counted, measured and made into batches. A sample's index is its identity: order, dropout and
// evaluation refer to it.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  virtual std::span<const int32_t> lengths() const = 0;  // tokens of each sample

  // The samples as one batch on CPU. An empty list gives a batch without tensors and count 0. Thread-safe.
  virtual Batch pack(std::span<const int64_t> samples) const = 0;
};

}  // namespace stretto::data
