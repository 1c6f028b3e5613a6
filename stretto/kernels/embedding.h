#pragma once

#include <vector>

#include "stretto/tensor/tensor.h"

namespace stretto::kernels {

// Selects rows of `table` [V, H] by `ids` [T], int64 in [0, V).
struct Lookup {
  Tensor ids, table;
};

// The sum of several lookups of T rows each, [T, H], in one pass. Tables are contiguous, of one dtype, on
// CPU: fp32, fp64, or bf16, which is summed in fp32 and rounded once.
Tensor row_sum(const std::vector<Lookup>& lookups);

// sums[ids[t]] += grad[t], in the order of t. grad [T, H], sums [V, H]: fp32 (fp64 for fp64), contiguous.
void add_rows(const Tensor& grad, const Tensor& ids, const Tensor& sums);

// Like row_sum, with ATen operators and autograd, on any device.
Tensor row_sum_reference(const std::vector<Lookup>& lookups);

}  // namespace stretto::kernels
