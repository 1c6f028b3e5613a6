#pragma once

#include <memory>
#include <string>
#include <vector>

#include "stretto/kernels/curve.h"
#include "stretto/nn/packed.h"
#include "stretto/nn/row_observer.h"

namespace stretto::nn {

// Functions with gradients on the rows of packed batches. Those that take a Context compute in one pass each way on CPU;
// on other devices, and where it asks for Kernels::reference, through ATen's operators. Backward passes add the gradients
// of parameters straight into their gradient buffers where those are set (the arena sets them, in fp32 also for bf16
// parameters), so nothing is rounded or copied on the way.

// A linear map: weight [out, in], bias [out] or undefined.
struct Affine {
  Tensor weight, bias;
};

// y = x W^T + b. x [T, in], all of one float type; returns [T, out].
// On CPUs without bf16 instructions a bf16 product is computed in fp32 and rounded: same result, usable speed.
Tensor linear(const Tensor& x, const Affine& map);

// Several maps of one x, whose gradients of x are summed as they are computed.
std::vector<Tensor> linears(const Tensor& x, const std::vector<Affine>& maps);

// Whether this CPU multiplies bf16 matrices in hardware (AVX512-BF16 or AMX).
bool cpu_has_bf16();

// Rows of `table` [V, H] at `ids` [T], whole numbers. Backward adds only the rows touched. Throws DataError for ids outside
// the table, ShapeError.
Tensor embedding(const Tensor& ids, const Tensor& table);

// The sum of several such lookups [T, H], in one pass each way.
struct Lookup {
  Tensor ids, table;
  std::shared_ptr<RowHook> hook = nullptr;  // its observer is notified of the rows that are used
};
Tensor embedding_sum(const std::vector<Lookup>& lookups, const Context& context = {});

// x * mask / (1 - p) while training, else x. x [T, C] are the rows of `layout`: each row's mask is keyed by its sample
// and position. `site` is the number of this dropout in the model.
Tensor dropout(const Tensor& x, double p, uint64_t site, const PackedLayout& layout, const Context& context);

// LayerNorm (Ba et al. 2016) over the last dimension: weight and bias [C].
struct NormParameters {
  Tensor weight, bias;
  double eps;
};

// dropout(norm(x)). x [T, C] are the rows of `layout`.
Tensor norm_dropout(const Tensor& x, const NormParameters& norm, double p, uint64_t site,
                    const PackedLayout& layout, const Context& context);

// norm(residual + dropout(x W^T + b)): how a block of a post-norm transformer ends. x [T, in] and residual [T, out] are
// the rows of `layout`.
Tensor linear_dropout_add_norm(const Tensor& x, const Affine& map, const Tensor& residual,
                               const NormParameters& norm, double p, uint64_t site,
                               const PackedLayout& layout, const Context& context);

// Full self-attention within each sequence: softmax(q k^T / sqrt(D)) v (Vaswani et al. 2017, eq. 1).
// q [T, heads, D] are the rows of `queries`: all of `keys`, or its first_tokens(); k and v those of `keys`; returns
// [T, heads * D]. bf16 inputs are computed in fp32. `p` drops attention weights.
Tensor packed_attention(const Tensor& q, const Tensor& k, const Tensor& v, const PackedLayout& queries,
                        const PackedLayout& keys, double p, uint64_t site, const Context& context);

// The activation that a Hugging Face config calls `name`. Throws ConfigError with a suggestion.
using Activation = kernels::Curve;
Activation activation(const std::string& name);

// norm(x + dropout(activation(x W_in^T + b_in) W_out^T + b_out)): the second half of such a block. x [T, C] are the rows
// of `layout`. What the activation gives is computed again in the backward pass.
Tensor mlp_dropout_add_norm(const Tensor& x, const Affine& in, Activation activation, const Affine& out,
                            const NormParameters& norm, double p, uint64_t site, const PackedLayout& layout,
                            const Context& context);

// Sum over rows of the cross entropy, and the number of rows whose label is not -100. logits [N, C] any float type
// (computed in fp32 or fp64), labels [N] int64. Throws DataError for labels that are neither -100 nor in [0, C).
Loss cross_entropy(const Tensor& logits, const Tensor& labels, const Context& context = {});

}  // namespace stretto::nn
