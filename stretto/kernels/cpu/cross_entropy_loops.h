#pragma once

#include "stretto/kernels/cpu/numbers.h"

namespace stretto::kernels {

// Cross entropy of rows of logits: log(sum(exp(logits[row]))) - logits[row][label]. Rows with the label
// `ignored` are skipped.
template <class T>
struct CrossEntropyCall {
  int64_t rows, classes;
  const T* logits;
  const int64_t* labels;
  int64_t ignored;
  // [rows, 2]: a row's largest logit, and the log of the sum of exponentials relative to it, which keeps
  // large logits exact. Written by the forward pass, read by the backward pass.
  Real<T>* normaliser;
  double* sum;      // of all rows; forward
  double grad_sum;  // backward
  T* grad_logits;   // may be the logits; null for the forward pass
  Real<T>* powers;  // [classes] of scratch if both passes are one, which needs no normaliser; else null
};
void cross_entropy_loop(const CrossEntropyCall<float>& call);
void cross_entropy_loop(const CrossEntropyCall<Bf16>& call);
void cross_entropy_loop(const CrossEntropyCall<double>& call);

}  // namespace stretto::kernels
