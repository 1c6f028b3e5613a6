#pragma once

#include <span>

#include "stretto/tensor/tensor.h"

namespace stretto::kernels {

// One range of parameters with all that an optimizer step touches; 1-D tensors of equal length. `compute` is undefined
// where the model computes in the master's own type.
struct OptimizerRange {
  Tensor master;   // fp32 or fp64
  Tensor grad;     // of master's type; zeroed by the pass that reads it
  Tensor compute;  // bf16 copy that the model computes with, rewritten from master
};

struct AdamwStep {
  double lr, beta1, beta2, eps, weight_decay;
  double grad_scale;  // gradients are multiplied by it: 1 / global count, clipping
  int64_t step;       // 1 at the first
};

// AdamW (Loshchilov & Hutter 2019, algorithm 2; PyTorch's order of operations) in one pass over memory: scale, update,
// cast, zero. `exp_avg` and `exp_avg_sq` are the moments, of master's type; on CPU they become zero where they leave the
// range of normal numbers (1e-38).
void adamw(const OptimizerRange& range, const Tensor& exp_avg, const Tensor& exp_avg_sq,
           const AdamwStep& step);

// A row of a table [rows, width] that steps have passed by because its gradient was zero.
struct StillRow {
  int64_t row;
  size_t first;  // of the steps that it has not been through
  bool moments;  // false: its moments are zeros
};

// Takes each row through steps[first], steps[first + 1], ... with a gradient of zero: to the bit what adamw() makes of it
// then. `table` and the moments are those of the whole table, on CPU; its gradient is not looked at. Moments that are
// zeros are not touched. REQUIRES: eps > 0.
void adamw_still_rows(const OptimizerRange& table, const Tensor& exp_avg, const Tensor& exp_avg_sq,
                      int64_t width, std::span<const StillRow> rows, std::span<const AdamwStep> steps);

// adamw() of these rows alone. On CPU.
void adamw_rows(const OptimizerRange& table, const Tensor& exp_avg, const Tensor& exp_avg_sq, int64_t width,
                std::span<const int64_t> rows, const AdamwStep& step);

struct SgdStep {
  double lr, momentum, dampening, weight_decay;
  bool nesterov;
  double grad_scale;
  int64_t step;
};

// SGD as torch.optim.SGD (momentum as Sutskever et al. 2013; the buffer starts as the first gradient). `momentum_buffer`
// is undefined when momentum is 0.
void sgd(const OptimizerRange& range, const Tensor& momentum_buffer, const SgdStep& step);

// Sum of squares of a 1-D tensor in double. Finite exactly where every element is.
double sum_of_squares(const Tensor& values);

}  // namespace stretto::kernels
