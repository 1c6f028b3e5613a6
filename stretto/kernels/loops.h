#pragma once

#include <cstdint>

namespace stretto::kernels {

// The bare loops below the kernels: plain memory in and out, no libtorch, each compiled for several processors.

// A row of a dropout mask: where it stands in Philox's counter, beside the column.
struct RowCounter {
  uint32_t position;
  uint32_t sample_low;
  uint32_t sample_high_and_stream;
};

// out[column] = 0 where the column's random word is below `threshold`, else `scale`.
void fill_dropout_row(float* out, int64_t columns, RowCounter row, uint64_t key, uint32_t threshold,
                      float scale);

// Numbers of one AdamW step, worked out once in double.
template <class Real>
struct AdamwConstants {
  Real lr_decay, beta1, beta2, eps, grad_scale, step_size, inverse_root_correction2;
};

// One pass: scale the gradient, update moments m and v and parameter p, zero the gradient. The ranges do not overlap.
void adamw_loop(float* p, float* g, float* m, float* v, int64_t n, const AdamwConstants<float>& c);
void adamw_loop(double* p, double* g, double* m, double* v, int64_t n, const AdamwConstants<double>& c);

double sum_of_squares_loop(const float* x, int64_t n);

}  // namespace stretto::kernels
