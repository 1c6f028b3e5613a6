#pragma once

#include <functional>
#include <map>

#include "stretto/tensor/tensor.h"

namespace stretto {

// Buffers that are needed for a short time, again and again, in similar sizes: kept when they are given back.
class ScratchBuffers {
 public:
  // Above this size a buffer's pages should be given back to the system while it is not in use: the time to
  // get them again is small beside that of computing with as many elements (an embedding table's), the memory
  // is not.
  static constexpr size_t largest_kept_bytes = size_t{32} << 20;

  explicit ScratchBuffers(std::function<Tensor(int64_t elements)> allocate)
      : allocate_(std::move(allocate)) {}

  // One of at least `elements` and at most twice as many, with the values it was given back with. If none
  // fits, the largest is freed for a new one, so that sizes that no longer occur do not add up.
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

}  // namespace stretto
