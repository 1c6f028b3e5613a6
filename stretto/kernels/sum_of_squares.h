#pragma once

#include "stretto/tensor/tensor.h"

namespace stretto::kernels {

// Sum of squares of a 1-D tensor in double. Finite if and only if every element is.
double sum_of_squares(const Tensor& values);

}  // namespace stretto::kernels
