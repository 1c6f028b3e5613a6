#pragma once

#include "stretto/kernels/dropout.h"

namespace stretto::kernels {

// Attention within the sequences of a packed batch. A sequence may have fewer queries than keys: query i is
// at position i of the sequence, or the queries are its last positions. Rows after the last sequence are
// padding: their results and gradients are 0. The dropout of a weight is a function of its sample, the
// query's place, the head and the key's position.
struct AttentionSequences {
  Tensor query_bounds;  // [B + 1] int64: sequence b's queries are rows query_bounds[b] .. query_bounds[b + 1]
  Tensor key_bounds;    // [B + 1] int64: likewise for keys and values
  Tensor samples;       // [B] int64: dataset index of each sequence's sample
  Tensor first_places;  // [B] int64: the place in its sample of each sequence's position 0
  bool causal = false;  // a query attends to keys up to its own position only
  bool queries_are_last = false;  // query i is at position i + keys - queries
  // with causal: a query attends to its own position and the window - 1 positions before it; 0: no limit
  int64_t window = 0;
  double scale = 0;  // the factor of scores; 0: 1 / sqrt(D)
  // [keys] int64: the rows of k and v that contain the keys of the sequences; key_bounds counts these
  // entries. For the forward pass only. Undefined: key i is row i.
  Tensor key_rows = {};
  int64_t first_head = 0;  // the number in the model of the first head of q, which selects dropout masks
};

// What is known on the host of AttentionSequences.
struct AttentionLengths {
  int64_t queries = 0, keys = 0;                  // rows of the sequences, without padding
  int64_t longest_queries = 0, longest_keys = 0;  // of a sequence
};

struct AttentionResult {
  Tensor rows;         // [queries, heads, D]
  Tensor log_sum_exp;  // [queries, heads] fp32 (fp64 for fp64): saved for the backward pass
};

struct AttentionGradients {
  Tensor q, k, v;
};

// softmax(q k^T / sqrt(D)) v for each sequence and head (Vaswani et al. 2017, eq. 1), with dropout of the
// weights. q [queries, heads, D], k and v [keys, key heads, D], fp32, fp64, bf16 or fp16 (both computed
// in fp32), on CPU. As many consecutive heads of q as heads / key heads share a head of k and v (Ainslie et
// al. 2023). Each row is contiguous; rows may be columns of a wider tensor. Memory grows with the number of
// tokens, not with its square.
AttentionResult attention(const Tensor& q, const Tensor& k, const Tensor& v,
                          const AttentionSequences& sequences, const Dropout& dropout);
// The gradients are written to tensors of the same shapes, which may also be columns of a wider tensor.
void attention_backward(const Tensor& grad, const AttentionResult& result, const Tensor& q, const Tensor& k,
                        const Tensor& v, const AttentionSequences& sequences, const Dropout& dropout,
                        const AttentionGradients& gradients);

// Like attention, with ATen operators and autograd on padded sequences: for other devices, and as the
// reference of tests.
Tensor attention_reference(const Tensor& q, const Tensor& k, const Tensor& v,
                           const AttentionSequences& sequences, const Dropout& dropout);

// The same with scores, weights and both matrix products in `products`; sums are fp32 (fp64 for fp64). It
// does not wait for the device.
Tensor attention_by_operators(const Tensor& q, const Tensor& k, const Tensor& v,
                              const AttentionSequences& sequences, const AttentionLengths& lengths,
                              const Dropout& dropout, at::ScalarType products);

}  // namespace stretto::kernels
