#pragma once

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "stretto/models/decoder_layer.h"
#include "stretto/models/staged.h"
#include "stretto/models/text_model.h"
#include "stretto/nn/sharded.h"
#include "stretto/nn/tensor_parallel.h"

namespace stretto {

// A decoder of a family, described by its configuration.
struct DecoderOptions {
  std::string words, positions, layers, norm;  // names in weight files; `positions` may be empty
  int64_t vocab_size = 0, max_length = 0;
  int64_t steady_length = std::numeric_limits<int64_t>::max();  // see TextLimits
  bool writes_on = false;                                       // see TextLimits
  int64_t number_of_layers = 0;
  bool tied = false;             // the head's weight is the word embedding table, else lm_head.weight
  int64_t padding_row = -1;      // row of the word embedding table that lookups do not train; -1: none
  double embedding_dropout = 0;  // of the sum of word and position embeddings
  DecoderLayerNames layer_names;
  DecoderLayerOptions layer;                  // options of all layers, except for
  std::vector<nn::AttentionRule> rules = {};  // their attention rules, one per layer
};

// A decoder with a language model's head: embeddings, layers and a last norm as blocks, then the head.
// Families are configurations of it.
class Decoder : public TextModel, public Staged, public CausalDecoder {
 public:
  // Returns the hidden states of the last layer, [T, H].
  Tensor forward(const Batch& batch, const nn::Context& context) const final;

  int64_t blocks() const final { return std::ssize(layers_) + 2; }
  nn::Carry run(const Range& range, nn::Carry carry, const Batch& batch,
                const nn::Context& context) const final;

  Loss loss(const Tensor& hidden, const Tensor& labels, const nn::Context& context) const final;
  Tensor logits(const Tensor& rows) const final;

  const std::vector<std::string>& labels() const final;  // empty
  TextLimits limits() const final {
    return {options_.vocab_size, options_.max_length, options_.steady_length, options_.writes_on};
  }
  Capabilities capabilities() const final { return {.causal_decoder = this}; }

 protected:
  explicit Decoder(DecoderOptions options);

  // The angles at the rows of `layout`, for heads of dtype `dtype`; none by default.
  virtual nn::Rotation angles(const nn::PackedLayout& layout, at::ScalarType dtype) const;

 private:
  Tensor embed(const Batch& batch, const nn::PackedLayout& layout, const nn::Context& context) const;
  const nn::TensorParallel& ranks() const { return options_.layer.ranks; }
  const Tensor& head() const { return head_ ? head_->weight : words_->weight; }

  DecoderOptions options_;
  std::shared_ptr<nn::VocabularyEmbedding> words_;
  std::shared_ptr<nn::Embedding> positions_;  // may be null
  std::vector<std::shared_ptr<nn::Sharded<DecoderLayer>>> layers_;
  std::shared_ptr<nn::Norm> norm_;
  std::shared_ptr<nn::ColumnLinear> head_;  // null if it is tied
};

}  // namespace stretto
