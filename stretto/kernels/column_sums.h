#pragma once

#include "stretto/tensor/tensor.h"

namespace stretto::kernels {

// Adds the sum of each column of rows [T, C] to sums [C]. rows: fp32, fp64 or bf16 (summed in fp32), on CPU;
// sums: of the type of the additions; both contiguous. Throws ShapeError.
void add_column_sums(const Tensor& rows, const Tensor& sums);

}  // namespace stretto::kernels
