#pragma once

#include <random>

#include "stretto/base/region.h"
#include "stretto/tensor/tensor.h"

// Parts of tensors for tests.
namespace stretto {

// A random part of a tensor: a box, and a range of its elements.
inline Region random_region(at::IntArrayRef shape, std::mt19937& random) {
  const auto below = [&](int64_t limit) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(limit));
  };
  Region region;
  for (const int64_t size : shape) {
    region.offset.push_back(below(size));
    region.extent.push_back(1 + below(size - region.offset.back()));
  }
  const int64_t elements = count_elements(region.extent);
  region.flat_begin = below(elements);
  region.flat_end = region.flat_begin + 1 + below(elements - region.flat_begin);
  return region;
}

// Returns the elements of a part, in order.
inline Tensor part_of(const Tensor& whole, const Region& region) {
  Tensor box = whole;
  for (size_t axis = 0; axis < region.extent.size(); ++axis)
    box =
        box.slice(static_cast<int64_t>(axis), region.offset[axis], region.offset[axis] + region.extent[axis]);
  return box.contiguous().view({-1}).slice(0, region.flat_begin, region.flat_end);
}

}  // namespace stretto
