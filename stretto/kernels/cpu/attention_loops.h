#pragma once

#include "stretto/kernels/cpu/dropout_loops.h"
#include "stretto/kernels/cpu/numbers.h"

namespace stretto::kernels {

// Rows whose beginnings are `stride` numbers apart.
template <class T>
struct StridedRows {
  T* memory;
  int64_t stride;
};

// Attention of queries over the keys of their own sequence, for B sequences and H heads. Sequence b has query
// rows [query_bounds[b], query_bounds[b + 1]) of H * D numbers and key rows [key_bounds[b], key_bounds[b +
// 1]) of key_heads * D; head h reads keys and values of head h / (H / key_heads).
template <class T>
struct AttentionCall {
  StridedRows<T> q, k, v;  // only read
  T* out;                  // [queries, H * D]
  Real<T>* log_sum_exp;    // [queries, H]
  const int64_t *query_bounds, *key_bounds, *samples, *first_places;
  const int64_t* key_rows;  // the row of each key; null: key i is row i
  int64_t sequences, heads, key_heads, width;
  double scale;
  int64_t window;
  bool causal, queries_are_last;  // see AttentionSequences
  Drop drop;                      // of attention weights
  int64_t first_head;             // the number of the first head in masks
  // Given for the backward pass, which reads out and log_sum_exp; the forward pass writes these.
  bool is_backward;
  const T* grad_out;
  StridedRows<T> grad_q, grad_k, grad_v;
};
// Memory for one head of keys and values of the longest sequence, and for one of its heads of queries.
template <class R>
struct AttentionScratch {
  R* memory;
  int64_t longest_queries, longest_keys;
};
// The rows of the longest of `sequences` sequences with these bounds.
inline int64_t longest(const int64_t* bounds, int64_t sequences) {
  int64_t result = 0;
  for (int64_t b = 0; b < sequences; ++b) {
    const int64_t rows = bounds[b + 1] - bounds[b];
    result = rows > result ? rows : result;
  }
  return result;
}
void attention_loop(const AttentionCall<float>& call);
void attention_loop(const AttentionCall<Bf16>& call);
void attention_loop(const AttentionCall<double>& call);

}  // namespace stretto::kernels
