#pragma once

#include <cstdint>

#include "stretto/tensor/tensor.h"

namespace stretto::kernels {

// Dropout whose mask is a function of the element only: philox(counter = (column / 4, place, sample, stream),
// key) decides whether element `column` of a row is kept. A sample gets the same mask on any rank, in any
// packing, at any accumulation step, and when activations are recomputed.
struct DropoutRows {
  Tensor samples;  // [R] int64: dataset index of the row's sample, 0 <= sample < 2^48
  Tensor places;   // [R] int64: the row's number in its sample, < 2^32
  int64_t streams =
      1;  // rows are repeated this often with stream = first_stream, ... < 2^16 (attention heads)
  int64_t first_stream = 0;
  int64_t first_column = 0;  // of a mask of some columns; a multiple of 4
};

// Probability (0: no dropout) and key of the masks.
struct Dropout {
  double p = 0;
  uint64_t key = 0;
};

// A tensor [R * streams, columns] of `dtype` on the rows' device, from column first_column on, whose elements
// are 0 with probability p, else 1 / (1 - p); of bool: whether they are kept. Row r * streams + s is row r of
// stream first_stream + s. REQUIRES: 0 < p < 1.
Tensor dropout_mask(const DropoutRows& rows, int64_t columns, double p, uint64_t key, at::ScalarType dtype);

// Like dropout_mask, with ATen operators only: for other devices, and as the reference of tests.
Tensor dropout_mask_reference(const DropoutRows& rows, int64_t columns, double p, uint64_t key,
                              at::ScalarType dtype);

}  // namespace stretto::kernels
