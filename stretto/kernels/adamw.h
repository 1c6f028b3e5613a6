#pragma once

#include <span>

#include "stretto/kernels/optimizer_range.h"

namespace stretto::kernels {

struct AdamwStep {
  double lr, beta1, beta2, eps, weight_decay;
  double grad_scale;  // factor of the gradients: 1 / global count, clipping
  int64_t step;       // from 1
};

// AdamW (Loshchilov & Hutter 2019, algorithm 2; PyTorch's order of operations) in one pass over memory:
// scale, update, cast, zero. `exp_avg` and `exp_avg_sq` are the moments, of master's type; on CPU denormal
// values (below 1e-38) are flushed to zero.
void adamw(const OptimizerRange& range, const Tensor& exp_avg, const Tensor& exp_avg_sq,
           const AdamwStep& step);

// A row of a table [rows, width] that steps have skipped because its gradient was zero.
struct IdleRow {
  int64_t row;
  size_t first;  // index of the first step that has not been applied to it
  bool moments;  // false: its moments are zeros
};

// Applies steps[first], steps[first + 1], ... to each row with a zero gradient; the result is bitwise equal
// to that of adamw(). `table` and the moments are those of the whole table, on CPU; the gradient is not read.
// Moments that are zero are not written. REQUIRES: eps > 0.
void adamw_idle_rows(const OptimizerRange& table, const Tensor& exp_avg, const Tensor& exp_avg_sq,
                     int64_t width, std::span<const IdleRow> rows, std::span<const AdamwStep> steps);

// Like adamw() for these rows only, on the CPU.
void adamw_rows(const OptimizerRange& table, const Tensor& exp_avg, const Tensor& exp_avg_sq, int64_t width,
                std::span<const int64_t> rows, const AdamwStep& step);

}  // namespace stretto::kernels
