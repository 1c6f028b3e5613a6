#pragma once

#include <cstdint>

#include "stretto/tensor/tensor.h"

namespace stretto::kernels {

// Dropout whose choices are a function of what is dropped, not of when or where it is computed: element `column` of a
// row is kept or not by philox(counter = (column / 4, position, sample, stream), key). So one sample gets the same mask
// on any rank, in any packing, at any accumulation step, and again in a recomputation.
struct DropoutRows {
  Tensor samples;       // [R] int64: dataset index of the row's sample, 0 <= sample < 2^48
  Tensor positions;     // [R] int64: position of the row in its sample, < 2^32
  int64_t streams = 1;  // rows are repeated this often with stream = 0, 1, ... < 2^16 (attention heads)
};

// How a kernel drops: with probability p (0: nothing), by masks of this key.
struct Dropout {
  double p = 0;
  uint64_t key = 0;
};

// [R * streams, columns] of `dtype` on the rows' device: 0 with probability p, else 1 / (1 - p). Row r * streams + s
// is row r of stream s. REQUIRES: 0 < p < 1.
Tensor dropout_mask(const DropoutRows& rows, int64_t columns, double p, uint64_t key, at::ScalarType dtype);

// The same through ATen operators alone: for other devices, and what the CPU kernel is tested against.
Tensor dropout_mask_reference(const DropoutRows& rows, int64_t columns, double p, uint64_t key,
                              at::ScalarType dtype);

}  // namespace stretto::kernels
