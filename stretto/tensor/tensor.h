#pragma once

#include <string>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "stretto/base/precision.h"

namespace stretto {

using at::Tensor;

at::ScalarType compute_dtype(Precision precision);
at::ScalarType master_dtype(
    Precision precision);  // of master weights, gradients, optimizer state and reductions

// "[2, 3] float": for messages.
std::string describe(const Tensor& tensor);
std::string describe(at::IntArrayRef shape);

}  // namespace stretto
