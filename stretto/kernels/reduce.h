#pragma once

#include <span>

#include <c10/core/ScalarType.h>

#include "stretto/kernels/reduce_op.h"

namespace stretto::kernels {

// Whether reduce() supports `dtype`: fp64, fp32, bf16, fp16, and integers of 8 to 64 bits.
bool can_reduce(at::ScalarType dtype);

// Writes in[0][i] op in[1][i] op ... to out[k][i] for each of `n` elements and every k, evaluated in this
// order; bf16 and fp16 are computed in fp32 and rounded once. NaN propagates, also through min and max;
// integer sums wrap around. An `out` may be one of the `in`; otherwise they do not overlap. REQUIRES:
// can_reduce(dtype), at least one `in`.
void reduce(ReduceOp op, at::ScalarType dtype, std::span<const void* const> in, std::span<void* const> out,
            int64_t n);

}  // namespace stretto::kernels
