#pragma once

#include "stretto/tensor/tensor.h"

namespace stretto {
class Group;
}

namespace stretto::nn {

// The product of a map that is divided by its inputs: the sum over `ranks` of x W^T, equal on all of them,
// [T, out]; if the ranks divide rows, this rank's rows of it, [T / ranks, out]. x [T, in] is an operand
// (nn/matmul.h), weight [out, in] the parameter. Rows are summed while later ones are multiplied: so many
// that their result has about `bytes_at_once`. Collective. Throws ShapeError if ranks do not divide the rows.
Tensor summed_product(const Tensor& x, const Tensor& weight, Group& ranks, bool divides_rows,
                      int64_t bytes_at_once = int64_t{1} << 20);

}  // namespace stretto::nn
