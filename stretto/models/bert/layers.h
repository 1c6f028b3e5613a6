#pragma once

#include <memory>

#include "stretto/model_config/bert.h"
#include "stretto/models/blocks.h"
#include "stretto/nn/tensor_parallel.h"

namespace stretto {

// One transformer layer. `index`: its number, which selects its dropout sites.
class BertLayer : public torch::nn::Module {
 public:
  BertLayer(const BertConfig& config, int64_t index, const nn::TensorParallel& ranks);

  // Maps x [T, H], the rows of `layout`, to the rows of `wanted`, [., H]. `wanted` is `layout`, or
  // layout.first_tokens(), which skips most of the computation.
  Tensor forward(const Tensor& x, const nn::PackedLayout& layout, const nn::PackedLayout& wanted,
                 const nn::Context& context) const;

 private:
  AttentionBlock attention_;
  MlpBlock mlp_;
};

// The sum of word, position and token type embeddings, normalised.
class BertEmbeddings : public torch::nn::Module {
 public:
  BertEmbeddings(const BertConfig& config, bool sparse_words, const nn::TensorParallel& ranks);

  // The batch's input_ids and token_type_ids [T] -> [T, H]. Throws DataError for sequences longer than the
  // model supports.
  Tensor forward(const Batch& batch, const nn::PackedLayout& layout, const nn::Context& context) const;

 private:
  int64_t max_length_, first_position_;
  double dropout_;
  std::shared_ptr<nn::VocabularyEmbedding> words_;
  std::shared_ptr<nn::Embedding> positions_, token_types_;
  std::shared_ptr<nn::LayerNorm> norm_;
};

}  // namespace stretto
