#pragma once

#include <string>

#include "stretto/tensor/safetensors.h"

namespace stretto {

// Whether all values are finite; true for empty tensors and for dtypes other than floating-point.
bool is_finite(const Tensor& tensor);

// The name of the first tensor with NaN or infinity; "" if all values are finite.
std::string first_nonfinite(const NamedTensors& tensors);

}  // namespace stretto
