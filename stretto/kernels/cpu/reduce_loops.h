#pragma once

#include <cstdint>

#include "stretto/kernels/cpu/half.h"
#include "stretto/kernels/reduce_op.h"

namespace stretto::kernels {

// For each of `n` elements: in[0] op in[1] op ... in[ins - 1], in this order, to every out[0 .. outs - 1].
// The 16-bit types are reduced in fp32 and rounded once, integers wrap around, NaN propagates. An `out` may
// be one of the `in`; otherwise they do not overlap.
template <class T>
struct ReduceOperands {
  const void* const* in;  // of T
  int ins;
  void* const* out;
  int outs;
  int64_t n;
};
void reduce_loop(ReduceOp op, const ReduceOperands<float>& operands);
void reduce_loop(ReduceOp op, const ReduceOperands<double>& operands);
void reduce_loop(ReduceOp op, const ReduceOperands<Bf16>& operands);
void sum_loop(const ReduceOperands<Bf16>& operands);  // ReduceOp::sum
void reduce_loop(ReduceOp op, const ReduceOperands<F16>& operands);
void reduce_loop(ReduceOp op, const ReduceOperands<uint8_t>& operands);
void reduce_loop(ReduceOp op, const ReduceOperands<int8_t>& operands);
void reduce_loop(ReduceOp op, const ReduceOperands<int16_t>& operands);
void reduce_loop(ReduceOp op, const ReduceOperands<int32_t>& operands);
void reduce_loop(ReduceOp op, const ReduceOperands<int64_t>& operands);

}  // namespace stretto::kernels
