#pragma once

#include <string>

#include "stretto/tensor/safetensors.h"

namespace stretto {

// Of a floating-point tensor; true for others and for empty ones.
bool is_finite(const Tensor& tensor);

// The name of the first tensor that holds NaN or infinity; "" if all values are finite.
std::string first_nonfinite(const NamedTensors& tensors);

}  // namespace stretto
