#pragma once

#include <functional>
#include <map>

#include "stretto/tensor/tensor.h"

namespace stretto::parallel {

// Keeps buffers that are needed repeatedly, for a short time and in similar sizes.
class ScratchBuffers {
 public:
  // Above this size a buffer's pages should be given back to the system while it is not in use: getting them
  // again takes little time compared with computing on that many elements (those of an embedding table),
  // whereas the memory matters.
  static constexpr size_t largest_kept_bytes = size_t{32} << 20;

  explicit ScratchBuffers(std::function<Tensor(int64_t elements)> allocate)
      : allocate_(std::move(allocate)) {}

  // A buffer of at least `elements` and at most twice as many, with the values that it had when it was
  // returned. If none fits, the largest one is freed for a new one, so that buffers of sizes that no longer
  // occur do not accumulate.
  Tensor take(int64_t elements) {
    const auto fitting = free_.lower_bound(elements);
    if (fitting != free_.end() && fitting->first <= 2 * elements) return free_.extract(fitting).mapped();
    if (!free_.empty()) free_.erase(std::prev(free_.end()));
    return allocate_(elements);
  }

  void give_back(const Tensor& buffer) { free_.emplace(buffer.numel(), buffer); }

 private:
  std::function<Tensor(int64_t)> allocate_;
  std::multimap<int64_t, Tensor> free_;  // by size
};

}  // namespace stretto::parallel
