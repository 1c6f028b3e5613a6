#include <cmath>
#include <limits>

#include "stretto/kernels/attention.h"
#include "stretto/kernels/loop_types.h"

namespace stretto::kernels {
namespace {

// Converts between packed rows and padded ones, [B, length].
struct Padding {
  Tensor slots;  // index of each packed row in [B * length]
  int64_t batch, length;

  // `used`: the number of packed rows. `longest`: of a sequence.
  Padding(const Tensor& bounds, int64_t used, int64_t longest) : batch(bounds.numel() - 1), length(longest) {
    const Tensor begins = bounds.slice(0, 0, batch), lengths = bounds.slice(0, 1) - begins;
    const Tensor sequence = at::repeat_interleave(at::arange(batch, bounds.options()), lengths, 0, used);
    const Tensor rows = at::arange(used, bounds.options());
    slots = rows + sequence * length - begins.index_select(0, sequence);
  }

  // [T, heads, D] -> [B, heads, length, D], zeros where a sequence is shorter than the longest.
  Tensor pad(const Tensor& x) const {
    const Tensor padded = at::zeros({batch * length, x.size(1), x.size(2)}, x.options())
                              .index_copy(0, slots, x.slice(0, 0, slots.numel()));
    return padded.view({batch, length, x.size(1), x.size(2)}).transpose(1, 2);
  }

  // [B, 1, 1, length]: 0 for a row, -infinity for padding.
  Tensor mask(const at::TensorOptions& options) const {
    const Tensor none = at::full({batch * length}, -std::numeric_limits<double>::infinity(), options);
    return none.index_fill(0, slots, 0).view({batch, 1, 1, length});
  }
};

// [B, queries]: the position of each query in its sequence.
Tensor positions_of_queries(const AttentionSequences& sequences, int64_t queries) {
  const auto lengths = [](const Tensor& bounds) { return bounds.slice(0, 1) - bounds.slice(0, 0, -1); };
  const Tensor each = at::arange(queries, sequences.samples.options()).view({1, queries});
  const Tensor keys = lengths(sequences.key_bounds), first = keys - lengths(sequences.query_bounds);
  const Tensor all = each + (sequences.queries_are_last ? first : at::zeros_like(first)).view({-1, 1});
  // Padding has the last position, whose window always contains a key.
  return at::minimum(all, (keys - 1).view({-1, 1}));
}

AttentionLengths lengths_of(const AttentionSequences& sequences) {
  const auto used = [](const Tensor& bounds) { return bounds[-1].item<int64_t>(); };
  const auto longest = [](const Tensor& bounds) {
    return (bounds.slice(0, 1) - bounds.slice(0, 0, -1)).max().item<int64_t>();
  };
  return {used(sequences.query_bounds), used(sequences.key_bounds), longest(sequences.query_bounds),
          longest(sequences.key_bounds)};
}

// [B, heads, queries, keys] bool: which weights dropout keeps, keyed by sample, query place [B, queries],
// head and key position.
Tensor kept_weights(const AttentionSequences& sequences, const Tensor& places, int64_t heads, int64_t keys,
                    const Dropout& dropout) {
  const int64_t batch = places.size(0), queries = places.size(1);
  const Tensor row_samples = sequences.samples.view({batch, 1}).expand({batch, queries}).reshape({-1});
  const Tensor mask = dropout_mask({row_samples, places.reshape({-1}), heads, sequences.first_head}, keys,
                                   dropout.p, dropout.key, at::kBool);
  return mask.view({batch, queries, heads, keys}).transpose(1, 2);
}

}  // namespace

Tensor attention_reference(const Tensor& q, const Tensor& k, const Tensor& v,
                           const AttentionSequences& sequences, const Dropout& dropout) {
  if (is_fp16(q)) {
    return attention_reference(widen_fp16(q), widen_fp16(k), widen_fp16(v), sequences, dropout).to(at::kHalf);
  }
  return attention_by_operators(q, k, v, sequences, lengths_of(sequences), dropout,
                                q.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
}

Tensor attention_by_operators(const Tensor& q, const Tensor& k, const Tensor& v,
                              const AttentionSequences& sequences, const AttentionLengths& lengths,
                              const Dropout& dropout, at::ScalarType products) {
  if (sequences.key_rows.defined()) {
    AttentionSequences in_order = sequences;
    in_order.key_rows = Tensor();
    return attention_by_operators(q, k.index_select(0, sequences.key_rows),
                                  v.index_select(0, sequences.key_rows), in_order, lengths, dropout,
                                  products);
  }
  if (k.size(1) != q.size(1)) {
    const int64_t group = q.size(1) / k.size(1);
    return attention_by_operators(q, k.repeat_interleave(group, 1), v.repeat_interleave(group, 1), sequences,
                                  lengths, dropout, products);
  }
  const Padding queries(sequences.query_bounds, lengths.queries, lengths.longest_queries);
  const Padding keys(sequences.key_bounds, lengths.keys, lengths.longest_keys);
  const double scale =
      sequences.scale != 0 ? sequences.scale : 1.0 / std::sqrt(static_cast<double>(q.size(2)));
  const Tensor scores =
      at::matmul(queries.pad(q.to(products) * scale), keys.pad(k.to(products)).transpose(2, 3));
  Tensor mask = keys.mask(scores.options());
  const Tensor positions = positions_of_queries(sequences, queries.length);
  if (sequences.causal) {
    const Tensor back = positions.view({positions.size(0), 1, -1, 1}) -
                        at::arange(keys.length, positions.options()).view({1, 1, 1, -1});
    Tensor hidden = back.lt(0);
    if (sequences.window > 0) hidden = hidden.logical_or(back.ge(sequences.window));
    mask = mask.masked_fill(hidden, -std::numeric_limits<double>::infinity());
  }
  Tensor weights = at::softmax(scores + mask, -1);
  if (dropout.p > 0) {
    const Tensor places = positions + sequences.first_places.unsqueeze(1);
    weights = weights * kept_weights(sequences, places, q.size(1), keys.length, dropout);
  }
  Tensor mixed = at::matmul(weights, keys.pad(v.to(products))).transpose(1, 2);
  if (dropout.p > 0) mixed = mixed * (1 / (1 - dropout.p));
  const Tensor rows = mixed.reshape({queries.batch * queries.length, q.size(1), q.size(2)});
  const Tensor found = rows.index_select(0, queries.slots).to(q.scalar_type());
  const int64_t padding = q.size(0) - found.size(0);
  return padding == 0 ? found : at::cat({found, at::zeros({padding, q.size(1), q.size(2)}, q.options())});
}

}  // namespace stretto::kernels
