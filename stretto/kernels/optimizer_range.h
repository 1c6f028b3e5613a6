#pragma once

#include "stretto/tensor/tensor.h"

namespace stretto::kernels {

// The tensors of a range of parameters that an optimizer step reads and writes: 1-D, of equal length.
// `compute` is undefined if the model computes with the master weights.
struct OptimizerRange {
  Tensor master;   // fp32 or fp64
  Tensor grad;     // of master's dtype; zeroed by the pass that reads it
  Tensor compute;  // copy in 16 bits that the model computes with, rewritten from master
};

// Copies range.master to range.compute, if that is defined.
inline void write_compute_copy(const OptimizerRange& range) {
  if (range.compute.defined()) Tensor(range.compute).copy_(range.master);
}

}  // namespace stretto::kernels
