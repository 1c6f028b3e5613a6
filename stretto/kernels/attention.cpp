#include "stretto/kernels/attention.h"

#include <algorithm>
#include <cmath>

#include "stretto/kernels/cpu/attention_loops.h"
#include "stretto/kernels/cpu/tensor_loops.h"

namespace stretto::kernels {
namespace {

// Throws unless `bounds` are within `rows`, the number of rows of `tensor` or of those listed by key_rows.
void require_bounds(const char* what, const Tensor& tensor, int64_t rows, const Tensor& bounds,
                    int64_t sequences) {
  require_sizes("attention: bounds", bounds, {sequences + 1});
  const int64_t* bound = memory_of<int64_t>(bounds);
  const bool ascend = std::is_sorted(bound, bound + sequences + 1);
  if (ascend && bound[0] == 0 && bound[sequences] <= rows) return;
  throw ShapeError("attention: the sequences run from row {} to {}, but {} is {}", bound[0], bound[sequences],
                   what, describe(tensor));
}

// Throws unless all keys are rows of k.
void require_key_rows(const Tensor& k, const Tensor& key_rows) {
  const int64_t* row = memory_of<int64_t>(key_rows);
  for (int64_t i = 0; i < key_rows.numel(); ++i) {
    if (row[i] < 0 || row[i] >= k.size(0))
      throw ShapeError("attention: key {} is row {}, but k is {}", i, row[i], describe(k));
  }
}

void require_fit(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionSequences& sequences) {
  if (q.dim() != 3 || k.dim() != 3 || k.size(1) < 1 || q.size(1) % k.size(1) != 0 || k.size(2) != q.size(2)) {
    throw ShapeError(
        "attention: q {} and k {} do not fit; [rows, heads, D] with the same D are needed, and a number of heads of q that is a multiple of k's",
        describe(q), describe(k));
  }
  require_sizes("attention: v", v, k.sizes());
  require_bounds("q", q, q.size(0), sequences.query_bounds, sequences.samples.numel());
  if (sequences.key_rows.defined()) require_key_rows(k, sequences.key_rows);
  require_bounds("k", k, sequences.key_rows.defined() ? sequences.key_rows.numel() : k.size(0),
                 sequences.key_bounds, sequences.samples.numel());
  require_sizes("attention: first_places", sequences.first_places, sequences.samples.sizes());
}

// The memory of rows [., heads, D], and the numbers from one row to the next.
template <class T>
StridedRows<T> rows_of(const Tensor& tensor) {
  if (tensor.scalar_type() != type_of<T> || tensor.stride(2) != 1 || tensor.stride(1) != tensor.size(2))
    throw ShapeError("attention: the rows of {} are not contiguous or not of the type of the other operands",
                     describe(tensor));
  return {static_cast<T*>(tensor.data_ptr()), tensor.stride(0)};
}

// The rows of `tensor` after the last sequence.
void zero_padding(const Tensor& tensor, const Tensor& bounds) {
  const int64_t end = memory_of<int64_t>(bounds)[bounds.numel() - 1];
  if (end < tensor.size(0)) tensor.slice(0, end).zero_();
}

template <class T>
AttentionCall<T> attention_call(const AttentionResult& result, const Tensor& q, const Tensor& k,
                                const Tensor& v, const AttentionSequences& sequences,
                                const Dropout& dropout) {
  AttentionCall<T> call = {};
  call.q = rows_of<T>(q);
  call.k = rows_of<T>(k);
  call.v = rows_of<T>(v);
  call.out = memory_of<T>(result.rows);
  call.log_sum_exp = memory_of<Real<T>>(result.log_sum_exp);
  call.query_bounds = memory_of<int64_t>(sequences.query_bounds);
  call.key_bounds = memory_of<int64_t>(sequences.key_bounds);
  call.key_rows = sequences.key_rows.defined() ? memory_of<int64_t>(sequences.key_rows) : nullptr;
  call.samples = memory_of<int64_t>(sequences.samples);
  call.first_places = memory_of<int64_t>(sequences.first_places);
  call.sequences = sequences.samples.numel();
  call.causal = sequences.causal;
  call.queries_are_last = sequences.queries_are_last;
  call.window = sequences.window;
  call.heads = q.size(1);
  call.key_heads = k.size(1);
  call.width = q.size(2);
  call.scale = sequences.scale != 0 ? sequences.scale : 1 / std::sqrt(static_cast<double>(q.size(2)));
  call.drop = drop_of(dropout);
  call.first_head = sequences.first_head;
  return call;
}

// Widens only the keys in use.
AttentionResult attention_of_fp16(const Tensor& q, const Tensor& k, const Tensor& v,
                                  const AttentionSequences& sequences, const Dropout& dropout) {
  AttentionSequences in_order = sequences;
  in_order.key_rows = Tensor();
  const auto keys = [&](const Tensor& all) {
    return widen_fp16(sequences.key_rows.defined() ? all.index_select(0, sequences.key_rows) : all);
  };
  AttentionResult result = attention(widen_fp16(q), keys(k), keys(v), in_order, dropout);
  result.rows = result.rows.to(at::kHalf);
  return result;
}

}  // namespace

AttentionResult attention(const Tensor& q, const Tensor& k, const Tensor& v,
                          const AttentionSequences& sequences, const Dropout& dropout) {
  if (is_fp16(q)) return attention_of_fp16(q, k, v, sequences, dropout);
  require_fit(q, k, v, sequences);
  AttentionResult result = {
      at::empty(q.sizes(), q.options()),
      at::empty({q.size(0), q.size(1)}, q.options().dtype(computed_type(q.scalar_type())))};
  with_loop_type(q.scalar_type(), [&](auto number) {
    attention_loop(attention_call<decltype(number)>(result, q, k, v, sequences, dropout));
  });
  zero_padding(result.rows, sequences.query_bounds);
  return result;
}

void attention_backward(const Tensor& grad, const AttentionResult& result, const Tensor& q, const Tensor& k,
                        const Tensor& v, const AttentionSequences& sequences, const Dropout& dropout,
                        const AttentionGradients& gradients) {
  if (is_fp16(q)) {
    const AttentionGradients wide = {at::empty(q.sizes(), at::kFloat), at::empty(k.sizes(), at::kFloat),
                                     at::empty(v.sizes(), at::kFloat)};
    attention_backward(widen_fp16(grad), {widen_fp16(result.rows), result.log_sum_exp}, widen_fp16(q),
                       widen_fp16(k), widen_fp16(v), sequences, dropout, wide);
    Tensor(gradients.q).copy_(wide.q);
    Tensor(gradients.k).copy_(wide.k);
    Tensor(gradients.v).copy_(wide.v);
    return;
  }
  if (sequences.key_rows.defined()) throw ShapeError("attention: key_rows have no backward pass");
  require_sizes("attention: gradient", grad, q.sizes());
  require_sizes("attention: gradient of q", gradients.q, q.sizes());
  require_sizes("attention: gradient of k", gradients.k, k.sizes());
  require_sizes("attention: gradient of v", gradients.v, v.sizes());
  with_loop_type(q.scalar_type(), [&](auto number) {
    using T = decltype(number);
    auto call = attention_call<T>(result, q, k, v, sequences, dropout);
    call.grad_out = memory_of<T>(grad);
    call.grad_q = rows_of<T>(gradients.q);
    call.grad_k = rows_of<T>(gradients.k);
    call.grad_v = rows_of<T>(gradients.v);
    call.is_backward = true;
    attention_loop(call);
  });
  zero_padding(gradients.q, sequences.query_bounds);
  zero_padding(gradients.k, sequences.key_bounds);
  zero_padding(gradients.v, sequences.key_bounds);
}

}  // namespace stretto::kernels
