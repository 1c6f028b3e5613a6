#pragma once

#include <memory>
#include <vector>

#include "stretto/models/bert/config.h"
#include "stretto/nn/layers.h"
#include "stretto/nn/sharded.h"
#include "stretto/tensor/hf_folder.h"

namespace stretto {

// One transformer block. `index` is its number, which keys its dropout.
class BertLayer : public torch::nn::Module {
 public:
  BertLayer(const BertConfig& config, int64_t index);

  // The rows x [T, H] of `layout` -> those of `wanted` [., H]: all of them, or layout.first_tokens(), which leaves out
  // most of the work.
  Tensor forward(const Tensor& x, const nn::PackedLayout& layout, const nn::PackedLayout& wanted,
                 const nn::Context& context) const;

 private:
  Tensor attention(const Tensor& x, const Tensor& wanted_x, const nn::PackedLayout& layout,
                   const nn::PackedLayout& wanted, const nn::Context& context) const;

  int64_t heads_, head_width_;
  double hidden_dropout_, attention_dropout_;
  uint64_t first_site_;
  nn::Activation activation_;
  std::shared_ptr<nn::Linear> query_, key_, value_, attention_output_, intermediate_, output_;
  std::shared_ptr<nn::LayerNorm> attention_norm_, output_norm_;
};

// The sum of word, position and token type embeddings, normalised.
class BertEmbeddings : public torch::nn::Module {
 public:
  BertEmbeddings(const BertConfig& config, bool sparse_words);

  // The batch's input_ids and token_type_ids [T] -> [T, H]. Throws DataError for positions beyond the model's.
  Tensor forward(const Batch& batch, const nn::PackedLayout& layout, const nn::Context& context) const;

 private:
  int64_t max_positions_;
  double dropout_;
  std::shared_ptr<nn::Embedding> words_, positions_, token_types_;
  std::shared_ptr<nn::LayerNorm> norm_;
};

// Embeddings, layers and pooler. Parameter names are those of Hugging Face's BertModel.
class BertModel : public torch::nn::Module {
 public:
  // sparse_words: the word embeddings are used in no other way than here (nn::Embedding).
  explicit BertModel(const BertConfig& config, bool sparse_words = true);

  // The batch's input_ids and token_type_ids [T] -> hidden states [T, H]. Throws DataError for positions beyond the model's.
  Tensor forward(const Batch& batch, const nn::PackedLayout& layout, const nn::Context& context) const;

  // The same for the first token of each sequence only [B, H]: the last block computes no others.
  Tensor forward_first(const Batch& batch, const nn::PackedLayout& layout, const nn::Context& context) const;

  // First tokens' hidden states [B, H] -> tanh of a linear map of them.
  Tensor pool(const Tensor& first) const;

 private:
  std::shared_ptr<nn::Sharded<BertEmbeddings>> embeddings_;
  std::vector<std::shared_ptr<nn::Sharded<BertLayer>>> layers_;
  std::shared_ptr<nn::Linear> pooler_;
};

// Hugging Face's BertForSequenceClassification.
class BertForSequenceClassification : public torch::nn::Module {
 public:
  explicit BertForSequenceClassification(const BertConfig& config, bool sparse_words = true);

  // A packed batch -> logits [B, num_labels].
  Tensor forward(const Batch& batch, const nn::Context& context) const;

  const BertConfig& config() const { return config_; }

  // Random weights as Hugging Face initialises them: normal(0, initializer_range), zero biases and padding row. Each
  // parameter's are a function of the seed and its name alone; `names` are those to set.
  void initialize(uint64_t seed);
  void initialize(uint64_t seed, const std::vector<std::string>& names);

  // Weights of a Hugging Face folder, old names (gamma, beta, no "bert." prefix) included; what the folder lacks is
  // left as it is and reported.
  WeightReport load(const std::filesystem::path& folder);
  using torch::nn::Module::load;  // of libtorch's archives

 private:
  BertConfig config_;
  std::shared_ptr<BertModel> bert_;
  std::shared_ptr<nn::Linear> classifier_;
};

}  // namespace stretto
