#pragma once

#include <cstdint>
#include <string>

#include "stretto/base/tensor_layout.h"
#include "stretto/tensor/tensor.h"

namespace stretto::nn {

// Random initial values. Each is a function of the key and of the row-major index of the element in the
// global tensor, and thus the same on any mesh, under any strategy and in any precision.

// The key of a parameter under its name in the model.
uint64_t initial_key(uint64_t seed, const std::string& name);

// Fills this rank's part of a parameter, given by `layout`, with normal(0, std).
void fill_normal(const Tensor& parameter, const TensorLayout& layout, uint64_t key, double std);

// Like fill_normal, with values that are uniform in [-bound, bound).
void fill_uniform(const Tensor& parameter, const TensorLayout& layout, uint64_t key, double bound);

// Zeroes the global elements `zeros`, as far as this rank has them.
void zero_elements(const Tensor& parameter, const TensorLayout& layout, const Range& zeros);

}  // namespace stretto::nn
