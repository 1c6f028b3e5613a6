#pragma once

#include <cstdint>
#include <string>

#include "stretto/base/tensor_layout.h"
#include "stretto/tensor/tensor.h"

namespace stretto::nn {

// Random initial values. Each is a function of the key and of the element's number in the global tensor
// (row-major): the same on any mesh, under any strategy and in any precision.

// The key of a parameter under its name in the model.
uint64_t initial_key(uint64_t seed, const std::string& name);

// Fills a parameter, of which this rank holds what `layout` says, with normal(0, std).
void fill_normal(const Tensor& parameter, const TensorLayout& layout, uint64_t key, double std);

// The same with values that are uniform in [-bound, bound).
void fill_uniform(const Tensor& parameter, const TensorLayout& layout, uint64_t key, double bound);

// Zeroes the global elements `zeros`, where they are here.
void zero_elements(const Tensor& parameter, const TensorLayout& layout, const Range& zeros);

}  // namespace stretto::nn
