#include "stretto/kernels/gpu_attention.h"

#include <cmath>

#include <ATen/ops/_efficient_attention_forward.h>
#include <ATen/ops/_flash_attention_forward.h>

#include "stretto/kernels/loop_types.h"

namespace stretto::kernels {
namespace {

constexpr int64_t widest_flash = 256;  // of a head

bool is_half(const Tensor& x) { return x.scalar_type() == at::kBFloat16 || x.scalar_type() == at::kHalf; }

// [rows, heads, D] of the sequences, without padding.
Tensor used(const Tensor& x, int64_t rows) { return x.size(0) == rows ? x : x.slice(0, 0, rows); }

Tensor flash(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionSequences& sequences,
             const AttentionLengths& lengths, double scale) {
  const auto left = sequences.window > 0 ? std::optional<int64_t>(sequences.window - 1) : std::nullopt;
  const auto right = sequences.window > 0 ? std::optional<int64_t>(0) : std::nullopt;
  return std::get<0>(at::_flash_attention_forward(q, k, v, sequences.query_bounds.to(at::kInt),
                                                  sequences.key_bounds.to(at::kInt), lengths.longest_queries,
                                                  lengths.longest_keys, /*dropout_p=*/0, sequences.causal,
                                                  /*return_debug_mask=*/false, scale, left, right));
}

Tensor memory_efficient(const Tensor& q, const Tensor& k, const Tensor& v,
                        const AttentionSequences& sequences, const AttentionLengths& lengths, double scale) {
  constexpr int64_t none = 0, causal_from_bottom_right = 2;  // for equal lengths also from the top left
  const int64_t group = q.size(1) / k.size(1);
  const auto one_batch = [](const Tensor& x) { return x.unsqueeze(0); };
  const auto of_heads = [&](const Tensor& x) {
    return one_batch(group == 1 ? x : x.repeat_interleave(group, 1));
  };
  const auto window = sequences.window > 0 ? std::optional<int64_t>(sequences.window) : std::nullopt;
  return std::get<0>(at::_efficient_attention_forward(
                         one_batch(q), of_heads(k), of_heads(v), /*bias=*/{},
                         sequences.query_bounds.to(at::kInt), sequences.key_bounds.to(at::kInt),
                         lengths.longest_queries, lengths.longest_keys, /*dropout_p=*/0,
                         sequences.causal ? causal_from_bottom_right : none,
                         /*compute_log_sumexp=*/at::GradMode::is_enabled(), scale, /*seqlen_k=*/{}, window))
      .squeeze(0);
}

}  // namespace

bool has_gpu_attention(const Tensor& q, const AttentionSequences& sequences, const AttentionLengths& lengths,
                       const Dropout& dropout) {
  if (!q.is_cuda() || dropout.p > 0) return false;
  // The kernels count positions of fewer queries than keys from the last ones.
  const bool counts_from_last = sequences.queries_are_last || lengths.queries == lengths.keys;
  if (sequences.causal && !counts_from_last) return false;
  if (is_half(q)) return q.size(2) % 8 == 0 && q.size(2) <= widest_flash;
  return q.scalar_type() == at::kFloat && q.size(2) % 4 == 0 && sequences.window == 0;
}

Tensor gpu_attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionSequences& sequences,
                     const AttentionLengths& lengths) {
  const double scale =
      sequences.scale != 0 ? sequences.scale : 1.0 / std::sqrt(static_cast<double>(q.size(2)));
  const bool gathers = sequences.key_rows.defined();
  const auto of_keys = [&](const Tensor& x) {
    return gathers ? x.index_select(0, sequences.key_rows) : used(x, lengths.keys);
  };
  const Tensor queries = used(q, lengths.queries), keys = of_keys(k), values = of_keys(v);
  const Tensor mixed = is_half(q) ? flash(queries, keys, values, sequences, lengths, scale)
                                  : memory_efficient(queries, keys, values, sequences, lengths, scale);
  const int64_t padding = q.size(0) - lengths.queries;
  if (padding == 0) return mixed;
  return at::cat({mixed, at::zeros({padding, q.size(1), q.size(2)}, mixed.options())});
}

}  // namespace stretto::kernels
