#pragma once

#include "stretto/tensor/tensor.h"

namespace stretto::kernels {

// What an optimizer step reads and writes of one range of parameters; 1-D tensors of equal length. `compute` is undefined
// where the model computes in the master's own type.
struct OptimizerRange {
  Tensor master;   // fp32 or fp64
  Tensor grad;     // of master's type; zeroed by the pass that reads it
  Tensor compute;  // bf16 copy that the model computes with, rewritten from master
};

// Rewrites range.compute, where there is one.
inline void write_compute_copy(const OptimizerRange& range) {
  if (range.compute.defined()) Tensor(range.compute).copy_(range.master);
}

}  // namespace stretto::kernels
