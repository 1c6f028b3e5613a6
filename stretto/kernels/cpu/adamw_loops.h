#pragma once

#include <cstdint>

namespace stretto::kernels {

// Coefficients of one AdamW step, computed once in double.
template <class R>
struct AdamwConstants {
  R lr_decay, beta1, beta2, eps, grad_scale, step_size, inverse_root_correction2;
};

// One pass: scale the gradient, update moments m and v and parameter p, zero the gradient. The ranges do not
// overlap.
void adamw_loop(float* p, float* g, float* m, float* v, int64_t n, const AdamwConstants<float>& c);
void adamw_loop(double* p, double* g, double* m, double* v, int64_t n, const AdamwConstants<double>& c);

// adamw_loop for zero gradients and moments: p *= lr_decay.
void decay_loop(float* p, int64_t n, float lr_decay);
void decay_loop(double* p, int64_t n, double lr_decay);

}  // namespace stretto::kernels
