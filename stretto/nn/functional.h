#pragma once

#include <string>

#include "stretto/nn/packed.h"

namespace stretto::nn {

// y = x W^T + b. x [T, in], weight [out, in], bias [out] or undefined; all of one float type; returns [T, out].
// Backward adds the gradients of weight and bias straight into their gradient buffers where those are set (the arena
// sets them, in fp32 also for bf16 weights), so nothing is rounded or copied on the way.
// On CPUs without bf16 instructions a bf16 product is computed in fp32 and rounded: same result, usable speed.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias);

// Whether this CPU multiplies bf16 matrices in hardware (AVX512-BF16 or AMX).
bool cpu_has_bf16();

// Rows of `table` [V, H] at `ids` [T]. Backward adds only the rows touched. Throws DataError for ids outside the table.
Tensor embedding(const Tensor& ids, const Tensor& table);

// x * mask / (1 - p) while training, else x. x [T, C]: each row's mask is keyed by its sample and position in `layout`.
// `site` is the number of this dropout in the model.
Tensor dropout(const Tensor& x, double p, uint64_t site, const PackedLayout& layout, const Context& context);

// The same for one row a sequence (a head on pooled output): x [B, C].
Tensor sequence_dropout(const Tensor& x, double p, uint64_t site, const PackedLayout& layout,
                        const Context& context);

// Full self-attention within each sequence: softmax(q k^T / sqrt(D)) v (Vaswani et al. 2017, eq. 1).
// q, k, v [T, heads, D]; returns [T, heads * D]. bf16 inputs are computed in fp32. `p` drops attention weights.
Tensor packed_attention(const Tensor& q, const Tensor& k, const Tensor& v, const PackedLayout& layout,
                        double p, uint64_t site, const Context& context);

// The activation that a Hugging Face config calls `name`. Throws ConfigError with a suggestion.
using Activation = Tensor (*)(const Tensor&);
Activation activation(const std::string& name);

// Sum over rows of the cross entropy, and the number of rows whose label is not -100. logits [N, C] any float type
// (computed in fp32 or fp64), labels [N] int64.
Loss cross_entropy(const Tensor& logits, const Tensor& labels);

}  // namespace stretto::nn
