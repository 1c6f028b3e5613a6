#pragma once

#include <vector>

#include "stretto/tensor/tensor.h"

namespace stretto::comm {

// The contribution of `rank`, computed equally by every rank. Sums of these are rounded.
inline Tensor contribution_of(int rank, int64_t n, at::ScalarType dtype) {
  const Tensor numbers = at::arange(n, at::kInt).mul_(2 * rank + 3).remainder_(101);
  return at::isFloatingType(dtype) ? (numbers.to(dtype) - 40) / 7 : numbers.to(dtype);
}

// The sum in the order of ranks, of 16-bit dtypes in fp32.
inline Tensor sum_of_all(int ranks, int64_t n, at::ScalarType dtype) {
  const bool narrow = dtype == at::kBFloat16 || dtype == at::kHalf;
  Tensor sum = contribution_of(0, n, dtype).to(narrow ? at::kFloat : dtype, false, /*copy=*/true);
  for (int rank = 1; rank < ranks; ++rank) sum.add_(contribution_of(rank, n, dtype));
  return sum.to(dtype);
}

}  // namespace stretto::comm
