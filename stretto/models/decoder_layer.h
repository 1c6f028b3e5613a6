#pragma once

#include <memory>
#include <string>

#include "stretto/nn/layers.h"
#include "stretto/nn/rotary.h"
#include "stretto/nn/tensor_parallel.h"

namespace stretto {

// The names of a layer's parts in weight files.
struct DecoderLayerNames {
  std::string attention_norm;
  // If only `query` is set, one map computes queries, keys and values side by side, each with `heads` heads.
  std::string query, key = {}, value = {};
  std::string output;
  std::string query_norm = {}, key_norm = {};  // RMSNorm of each head; empty: none
  std::string mlp_norm, in;
  std::string factor = {};  // the map by whose result activations are multiplied; empty: none
  std::string out;
};

struct DecoderLayerOptions {
  int64_t width = 0, inner = 0;
  int64_t heads = 0, key_heads = 0;  // consecutive heads of queries share a head of keys and values
  int64_t head_width = 0;
  bool rms_norm = false;  // false: LayerNorm
  double norm_eps = 0;
  bool transposed = false;  // weights are [in, out]
  bool query_bias = false, attention_output_bias = false,
       mlp_bias = false;  // of queries, keys and values; ...
  nn::Activation activation = {};
  nn::AttentionRule rule = {};
  double dropout = 0;             // of the outputs of attention and MLP
  double attention_dropout = 0;   // of the attention weights
  uint64_t first_site = 0;        // number of its first dropout site; it has `sites`
  nn::TensorParallel ranks = {};  // among which heads and inner columns are divided
};

// A pre-norm transformer layer (Xiong et al. 2020), of which the layers of all decoders are variants:
//   x += dropout(output(attention(norm(x))));  x += dropout(out(activation(in(norm(x))) * factor(norm(x))))
class DecoderLayer : public torch::nn::Module {
 public:
  // Throws ConfigError if heads cannot be divided evenly among the ranks.
  DecoderLayer(const DecoderLayerNames& names, const DecoderLayerOptions& options);

  // x [T, H], the rows of `layout` -> [T, H]. Queries and keys are rotated, if there is a rotation. If the
  // ranks divide rows, x and the result are this rank's (RowsBetweenBlocks).
  Tensor forward(const Tensor& x, const nn::PackedLayout& layout, const nn::Rotation& rotation,
                 const nn::Context& context) const;

  static constexpr uint64_t sites = 3;  // dropout sites

 private:
  nn::NormParameters of_heads(const nn::Norm& norm) const;
  Tensor attend(const Tensor& x, const nn::PackedLayout& layout, const nn::Rotation& rotation,
                const nn::Context& context) const;

  DecoderLayerOptions options_;
  std::shared_ptr<nn::Norm> attention_norm_, mlp_norm_;
  std::shared_ptr<nn::Linear> query_, key_, value_,
      output_;                                       // key_ and value_ are null if query_ computes all three
  std::shared_ptr<nn::Norm> query_norm_, key_norm_;  // may be null
  std::shared_ptr<nn::Linear> in_, factor_, out_;    // factor_ may be null
};

// A norm of the states between maps, RMSNorm or LayerNorm, registered at `path` below `root`.
std::shared_ptr<nn::Norm> add_norm(torch::nn::Module& root, const std::string& path, int64_t width, bool rms,
                                   double eps, const nn::TensorParallel& ranks);

}  // namespace stretto
