#pragma once

#include <cstdint>

#include "stretto/kernels/half.h"

namespace stretto::kernels {

// The bare loops below the kernels: plain memory in and out, no libtorch, compiled for several processors, of which the
// one that fits is chosen at run time. What a compiler vectorises by itself is a plain loop (multiarch.h); what needs
// elementary functions, wide products or tiles held in registers is written with Highway's vectors (simd-inl.h).

// What numbers of a type are computed in: sums and elementary functions of bf16 numbers are fp32.
template <class T>
struct Computed {
  using Real = float;
};
template <>
struct Computed<double> {
  using Real = double;
};
template <class T>
using Real = typename Computed<T>::Real;

// A row of a dropout mask: where it stands in Philox's counter, beside the column.
struct RowCounter {
  uint32_t position;
  uint32_t sample_low;
  uint32_t sample_high_and_stream;
};

inline RowCounter row_counter(int64_t sample, int64_t position, int64_t stream) {
  const auto bits = static_cast<uint64_t>(sample);
  return {static_cast<uint32_t>(position), static_cast<uint32_t>(bits),
          static_cast<uint32_t>(bits >> 32) | static_cast<uint32_t>(stream) << 16};
}

// Elements whose random word is below `threshold` are dropped, the others multiplied by `scale`.
struct Drop {
  uint64_t key = 0;
  uint32_t threshold = 0;
  double scale = 1;
};

// out[column] = 0 or drop.scale.
void dropout_loop(float* out, int64_t columns, RowCounter row, const Drop& drop);

// Attention of queries over the keys of their own sequence, for B sequences and H heads. Rows are H * D numbers;
// sequence b has query rows [query_bounds[b], query_bounds[b + 1]) and key rows [key_bounds[b], key_bounds[b + 1]).
template <class T>
struct AttentionCall {
  const T *q, *k, *v;
  T* out;                // [queries, H * D]
  Real<T>* log_sum_exp;  // [queries, H]
  const int64_t *query_bounds, *key_bounds, *samples;
  int64_t sequences, heads, width;
  Drop drop;  // of attention weights
  // Given for the backward pass, which reads out and log_sum_exp; null for the forward pass, which writes them.
  const T* grad_out;
  T *grad_q, *grad_k, *grad_v;
};
// Memory for one head of the longest sequence.
template <class R>
struct AttentionScratch {
  R* memory;
  int64_t longest_queries, longest_keys;
};
void attention_loop(const AttentionCall<float>& call);
void attention_loop(const AttentionCall<Bf16>& call);
void attention_loop(const AttentionCall<double>& call);

// sum = residual + drop_before(sum + bias); out = drop_after(weight * (sum - mean) * rstd + offset), row by row.
template <class T>
struct NormCall {
  int64_t rows, width;
  const T *bias, *residual;  // or null
  const T *weight, *offset;
  double eps;
  const int64_t *samples, *positions;  // of the rows, for dropout
  Drop before, after;
  T* sum;  // in: what is to be added to the residual; out: what was normalised
  T* out;
  Real<T>*mean, *rstd;  // [rows]
  // Given for the backward pass, which reads sum, mean and rstd; null for the forward pass, which writes them.
  const T* grad_out;
  T* grad_sum;    // gradient of the residual
  T* grad_input;  // of the sum's input: grad_sum through drop_before; null where nothing is dropped
  Real<T>*grad_weight, *grad_offset, *grad_bias;  // [width], added to; grad_bias may be null
};
void norm_loop(const NormCall<float>& call);
void norm_loop(const NormCall<Bf16>& call);
void norm_loop(const NormCall<double>& call);

enum class Curve { gelu, gelu_tanh, relu, silu, tanh, sigmoid };

// out = curve(in + bias); backward: grad_in = grad_out * curve'(in + bias), and its sum over rows.
template <class T>
struct ActivationCall {
  Curve curve;
  int64_t rows, width;
  const T *in, *bias;  // bias may be null
  T* out;
  // Given for the backward pass; null for the forward pass, which writes out.
  const T* grad_out;
  T* grad_in;
  Real<T>* grad_bias;  // [width], added to; null without bias
};
void activation_loop(const ActivationCall<float>& call);
void activation_loop(const ActivationCall<Bf16>& call);
void activation_loop(const ActivationCall<double>& call);

// out[row] = the sum of tables[t][ids[t][row]] over the tables, each of rows of `width` numbers.
template <class T>
struct RowSumCall {
  const T* const* tables;
  const int64_t* const* ids;
  int64_t count;  // of tables
  int64_t rows, width;
  T* out;
};
void row_sum_loop(const RowSumCall<float>& call);
void row_sum_loop(const RowSumCall<Bf16>& call);
void row_sum_loop(const RowSumCall<double>& call);

// sums[ids[row]] += grad[row], in the order of rows.
template <class T>
struct RowAddCall {
  const T* grad;
  const int64_t* ids;
  int64_t rows, width;
  Real<T>* sums;
};
void row_add_loop(const RowAddCall<float>& call);
void row_add_loop(const RowAddCall<Bf16>& call);
void row_add_loop(const RowAddCall<double>& call);

// Cross entropy of rows of logits: log(sum(exp(logits[row]))) - logits[row][label]. Rows with the label `ignored` count nothing.
template <class T>
struct CrossEntropyCall {
  int64_t rows, classes;
  const T* logits;
  const int64_t* labels;
  int64_t ignored;
  // [rows, 2]: a row's largest logit, and the log of the sum of exponentials relative to it, which keeps large logits
  // exact. Written by the forward pass, read by the backward pass.
  Real<T>* normaliser;
  double* sum;      // of all rows; forward
  double grad_sum;  // backward
  T* grad_logits;   // null for the forward pass
};
void cross_entropy_loop(const CrossEntropyCall<float>& call);
void cross_entropy_loop(const CrossEntropyCall<Bf16>& call);
void cross_entropy_loop(const CrossEntropyCall<double>& call);

// Numbers of one AdamW step, worked out once in double.
template <class R>
struct AdamwConstants {
  R lr_decay, beta1, beta2, eps, grad_scale, step_size, inverse_root_correction2;
};

// One pass: scale the gradient, update moments m and v and parameter p, zero the gradient. The ranges do not overlap.
void adamw_loop(float* p, float* g, float* m, float* v, int64_t n, const AdamwConstants<float>& c);
void adamw_loop(double* p, double* g, double* m, double* v, int64_t n, const AdamwConstants<double>& c);

// What is left of the pass where gradient and moments are zeros: p *= c.lr_decay.
void decay_loop(float* p, int64_t n, float lr_decay);
void decay_loop(double* p, int64_t n, double lr_decay);

void round_to_bf16_loop(const float* from, Bf16* to, int64_t n);

double sum_of_squares_loop(const float* x, int64_t n);

}  // namespace stretto::kernels
