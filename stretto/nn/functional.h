#pragma once

#include <memory>
#include <string>
#include <vector>

#include "stretto/kernels/activation_type.h"
#include "stretto/nn/packed.h"

namespace stretto {
class Group;
}

namespace stretto::nn {

struct RowHook;

// Differentiable functions on the rows of packed batches. Those that take a Context use one fused kernel per
// direction on CPU, and ATen's operators on other devices and under Kernels::reference. Backward passes
// accumulate the gradients of parameters directly into their gradient buffers if those are set, without
// rounding or copies. The arena sets them, in fp32 also for bf16 parameters.

// A linear map: weight [out, in], bias [out] or undefined.
struct Affine {
  Tensor weight, bias;
  bool transposed = false;  // weight is [in, out], as in Hugging Face's Conv1D
  // The ranks among which the map is divided (nn/tensor_parallel.h), of which each has some of the outputs,
  // or some of the inputs. All maps of one x have the same ranks in outputs_over.
  Group* outputs_over = nullptr;  // the gradient of x is summed over these ranks
  Group* inputs_over = nullptr;   // x W^T is summed over these ranks, before the bias is added
  // Sequence parallelism: x of a map with outputs_over, and the result of one with inputs_over, are this
  // rank's rows, as many as each other rank has.
  bool of_rows = false;
};

// y = x W^T + b. x [T, in], weight and bias of the same float type; returns [T, out]. On CPUs an fp16 matmul,
// and a bf16 one without bf16 instructions, is computed in fp32 and rounded, which gives the same result
// faster.
Tensor linear(const Tensor& x, const Affine& map);

// Several linear maps of the same x [T, in]: one [T, out] for each. Their gradients of x are accumulated in
// place.
std::vector<Tensor> linears(const Tensor& x, const std::vector<Affine>& maps);

// Whether this CPU multiplies bf16 matrices in hardware (AVX512-BF16 or AMX).
bool cpu_has_bf16();

// Selects rows of `table` [V, H] by `ids` [T], of an integer dtype. Backward adds to the selected rows only.
// Throws DataError for ids out of range, ShapeError.
Tensor embedding(const Tensor& ids, const Tensor& table);

// Throws DataError unless `ids`, of any shape, are in [0, rows): those of a table of that many rows. Ids on
// other devices than CPUs are not checked.
void require_ids(const Tensor& ids, int64_t rows);

// Rows of `table` [V, H], selected by `ids` [T].
struct Lookup {
  Tensor ids, table;
  std::shared_ptr<RowHook> hook = nullptr;  // its observer is notified of the rows that are used
};

// The sum of several lookups, [T, H], with one kernel per direction. Throws like embedding().
Tensor embedding_sum(const std::vector<Lookup>& lookups, const Context& context = {});

// x * mask / (1 - p) in training, else x. x [T, C] are the rows of `layout`: the mask of a row depends on its
// sample and its place in the sample. `site` is the number of this dropout in the model. `first_column`: the
// number in the model of x's first column, if x are the columns of one rank.
Tensor dropout(const Tensor& x, double p, uint64_t site, const PackedLayout& layout, const Context& context,
               int64_t first_column = 0);

// LayerNorm (Ba et al. 2016) over the last dimension: weight and bias [C]. Without a bias it is RMSNorm
// (Zhang & Sennrich 2019).
struct NormParameters {
  Tensor weight, bias;
  double eps;
};

// The normalisation with these parameters. x [T, C].
Tensor norm(const Tensor& x, const NormParameters& norm, const Context& context = {});

// linears() of norm(x): the beginning of each half of a pre-norm transformer block. x [T, C]. The normalised
// rows are not kept: the backward pass computes them again.
std::vector<Tensor> norm_linears(const Tensor& x, const NormParameters& norm, const std::vector<Affine>& maps,
                                 const Context& context = {});

// dropout(norm(x)). x [T, C] are the rows of `layout`.
Tensor norm_dropout(const Tensor& x, const NormParameters& norm, double p, uint64_t site,
                    const PackedLayout& layout, const Context& context);

// norm(residual + dropout(x W^T + b)): the end of a post-norm transformer block. x [T, in] and residual [T,
// out] are the rows of `layout`.
Tensor linear_dropout_add_norm(const Tensor& x, const Affine& map, const Tensor& residual,
                               const NormParameters& norm, double p, uint64_t site,
                               const PackedLayout& layout, const Context& context);

// The keys that a query attends to, and the scale of its scores.
struct AttentionRule {
  bool causal = false;     // a query attends to keys up to its own position only
  int64_t window = 0;      // with causal: the number of keys a query attends to, up to its own; 0: all
  double scale = 0;        // the factor of scores; 0: 1 / sqrt(D)
  int64_t first_head = 0;  // the number in the model of the first head of q, which selects dropout masks
};

// Attention within each sequence: softmax(q k^T / sqrt(D)) v (Vaswani et al. 2017, eq. 1). q [T, heads, D]
// are the rows of `queries`: all of `keys`, or its first_tokens() or last_tokens(); k and v [., key heads, D]
// those of `keys`, of which consecutive heads of q share one (Ainslie et al. 2023); returns [T, heads * D].
// bf16 inputs are computed in fp32. `p` is the dropout probability of attention weights.
Tensor packed_attention(const Tensor& q, const Tensor& k, const Tensor& v, const PackedLayout& queries,
                        const PackedLayout& keys, double p, uint64_t site, const Context& context,
                        const AttentionRule& rule = {});

// Attention of queries, keys and values that are columns of one tensor [T, 3 * heads * D].
Tensor joined_attention(const Tensor& qkv, int64_t heads, const PackedLayout& layout, double p, uint64_t site,
                        const Context& context, const AttentionRule& rule = {});

// The activation named `name` in a Hugging Face config (hidden_act). Throws ConfigError with a suggestion.
using Activation = kernels::Activation;
Activation activation(const std::string& name);

// Applies the activation to each element of x, by ATen's operators. The result has the shape of x.
Tensor activate(const Tensor& x, Activation activation);

// norm(x + dropout(activation(x W_in^T + b_in) W_out^T + b_out)): the second half of a post-norm transformer
// block. x [T, C] are the rows of `layout`. The activation is recomputed in the backward pass.
Tensor mlp_dropout_add_norm(const Tensor& x, const Affine& in, Activation activation, const Affine& out,
                            const NormParameters& norm, double p, uint64_t site, const PackedLayout& layout,
                            const Context& context);

// residual + dropout(x W^T + b): the end of the first half of a pre-norm transformer block. x [T, in] and
// residual [T, out] are the rows of `layout`.
Tensor linear_dropout_add(const Tensor& x, const Affine& map, const Tensor& residual, double p, uint64_t site,
                          const PackedLayout& layout, const Context& context);

// The first part of an MLP: activation(x W_in^T + b_in), times x W_factor^T + b_factor if there is a factor
// (Shazeer 2020).
struct Gate {
  Affine in;
  Activation activation;
  Affine factor = {};  // without a weight: no factor
};

// x + dropout(gate(norm(x)) W_out^T + b_out): the second half of a pre-norm transformer block. x [T, C] are
// the rows of `layout`. The norm and the activation are recomputed in the backward pass.
Tensor norm_mlp_dropout_add(const Tensor& x, const NormParameters& norm, const Gate& gate, const Affine& out,
                            double p, uint64_t site, const PackedLayout& layout, const Context& context);

// Sum over rows of the cross entropy, and the number of rows whose label is not -100. logits [N, C] any float
// type (computed in fp32 or fp64), labels [N] int64. Throws DataError for labels that are neither -100 nor in
// [0, C).
Loss cross_entropy(const Tensor& logits, const Tensor& labels, const Context& context = {});

// cross_entropy(x W^T, labels) for many classes C. Logits are computed for a few rows at a time, together
// with the gradients, and are not kept. x [N, in], weight [C, in]; rows whose label is -100 are skipped. The
// gradients are kept until backward, the weight's in fp32 (fp64 for fp64). Throws like cross_entropy, and
// ShapeError.
Loss linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& labels,
                          const Context& context = {});

// Some of the classes, whose rows of the weight this rank has; the others are on the other `ranks`.
struct ClassesOfRank {
  Group& ranks;
  int64_t first = 0;  // the number of this rank's first class
  int64_t all = 0;    // the number of classes
};

// linear_cross_entropy() with the classes divided among ranks: the same result on each, from the same x and
// labels. Ranks exchange a maximum and two sums per row, but no logits. weight [classes of this rank, in].
Loss linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& labels,
                          const ClassesOfRank& classes, const Context& context = {});

}  // namespace stretto::nn
