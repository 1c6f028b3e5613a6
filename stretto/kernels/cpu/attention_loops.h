#pragma once

#include "stretto/kernels/cpu/dropout_loops.h"
#include "stretto/kernels/cpu/numbers.h"

namespace stretto::kernels {

// Attention of queries over the keys of their own sequence, for B sequences and H heads. Rows are H * D
// numbers; sequence b has query rows [query_bounds[b], query_bounds[b + 1]) and key rows [key_bounds[b],
// key_bounds[b + 1]).
template <class T>
struct AttentionCall {
  const T *q, *k, *v;
  T* out;                // [queries, H * D]
  Real<T>* log_sum_exp;  // [queries, H]
  const int64_t *query_bounds, *key_bounds, *samples, *first_places;
  int64_t sequences, heads, width;
  bool causal, queries_are_last;  // see AttentionSequences
  Drop drop;                      // of attention weights
  // Given for the backward pass, which reads out and log_sum_exp; null for the forward pass, which writes
  // them.
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

}  // namespace stretto::kernels
