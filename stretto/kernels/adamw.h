#pragma once

#include <span>

#include "stretto/kernels/optimizer_range.h"

namespace stretto::kernels {

struct AdamwStep {
  double lr, beta1, beta2, eps, weight_decay;
  double grad_scale;  // gradients are multiplied by it: 1 / global count, clipping
  int64_t step;       // 1 at the first
};

// AdamW (Loshchilov & Hutter 2019, algorithm 2; PyTorch's order of operations) in one pass over memory: scale, update,
// cast, zero. `exp_avg` and `exp_avg_sq` are the moments, of master's type; on CPU denormal
// values (below 1e-38) are flushed to zero.
void adamw(const OptimizerRange& range, const Tensor& exp_avg, const Tensor& exp_avg_sq,
           const AdamwStep& step);

// A row of a table [rows, width] that steps have left out because its gradient was zero.
struct IdleRow {
  int64_t row;
  size_t first;  // of the steps that it has not been through
  bool moments;  // false: its moments are zeros
};

// Takes each row through steps[first], steps[first + 1], ... with a gradient of zero: to the bit what adamw() makes of it
// then. `table` and the moments are those of the whole table, on CPU; its gradient is not looked at. Moments that are
// zeros are not touched. REQUIRES: eps > 0.
void adamw_idle_rows(const OptimizerRange& table, const Tensor& exp_avg, const Tensor& exp_avg_sq,
                     int64_t width, std::span<const IdleRow> rows, std::span<const AdamwStep> steps);

// adamw() of these rows alone. On CPU.
void adamw_rows(const OptimizerRange& table, const Tensor& exp_avg, const Tensor& exp_avg_sq, int64_t width,
                std::span<const int64_t> rows, const AdamwStep& step);

}  // namespace stretto::kernels
