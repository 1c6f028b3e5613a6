#pragma once

#include <functional>
#include <string>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "stretto/base/precision.h"

namespace stretto {

using at::Tensor;

// The dtype in which layers compute. Throws ConfigError for a value outside the enum.
at::ScalarType compute_dtype(Precision precision);
// The dtype of master weights, gradients, optimizer state and reductions.
at::ScalarType master_dtype(Precision precision);

// Allocates the long-lived buffers of the arena: returns a zeroed 1-D tensor. Allocators differ in the kind
// of memory: those of memory.h, a segment shared with other ranks, pinned memory.
using Allocator = std::function<Tensor(int64_t elements, at::ScalarType dtype, at::Device device)>;

// "[2, 3] float": for messages.
std::string describe(const Tensor& tensor);
std::string describe(at::IntArrayRef shape);

}  // namespace stretto
