#pragma once

#include <memory>
#include <vector>

#include "stretto/model_config/bart.h"
#include "stretto/models/blocks.h"
#include "stretto/models/text_model.h"
#include "stretto/nn/sharded.h"
#include "stretto/nn/tensor_parallel.h"

namespace stretto {

class BartEncoderLayer : public torch::nn::Module {
 public:
  BartEncoderLayer(const BartConfig& config, uint64_t first_site, const nn::TensorParallel& ranks);

  // x [T, H], the rows of `layout` -> [T, H].
  Tensor forward(const Tensor& x, const nn::PackedLayout& layout, const nn::Context& context) const;

  static constexpr uint64_t sites = 4;  // dropout sites

 private:
  AttentionBlock attention_;
  MlpBlock mlp_;
};

class BartDecoderLayer : public torch::nn::Module {
 public:
  BartDecoderLayer(const BartConfig& config, uint64_t first_site, const nn::TensorParallel& ranks);

  // Maps x and encoded [T, H], the rows of `layout`, to the rows of `wanted`, [., H]: `layout`, or
  // layout.last_tokens().
  Tensor forward(const Tensor& x, const Tensor& encoded, const nn::PackedLayout& layout,
                 const nn::PackedLayout& wanted, const nn::Context& context) const;

  static constexpr uint64_t sites = 6;

 private:
  AttentionBlock self_attention_, cross_attention_;
  MlpBlock mlp_;
};

// The embeddings of encoder or decoder (positions and norm) without the word embedding table, which both
// share.
class BartPositions : public torch::nn::Module {
 public:
  BartPositions(const BartConfig& config, uint64_t site);

  // ids [T] -> [T, H]. Throws DataError for sequences longer than the model supports.
  Tensor forward(const nn::VocabularyEmbedding& words, const Tensor& ids, const nn::PackedLayout& layout,
                 const nn::Context& context) const;

 private:
  int64_t max_positions_;
  double dropout_;
  uint64_t site_;
  std::shared_ptr<nn::Embedding> positions_;
  std::shared_ptr<nn::LayerNorm> norm_;
};

// Encoder and decoder. Parameter names are those of Hugging Face's BartModel.
class BartModel : public torch::nn::Module {
 public:
  // `ranks`: those among which heads, inner columns and words are divided and, if they divide them, rows.
  BartModel(const BartConfig& config, const nn::TensorParallel& ranks);

  // Encodes the batch's input_ids [T], and decodes them again, each sequence shifted right by one token,
  // after decoder_start_token_id. Returns the decoder's hidden states of the last token of each sequence, [B,
  // H]: the last layer skips the other tokens.
  Tensor forward_last(const Batch& batch, const nn::PackedLayout& layout, const nn::Context& context) const;

 private:
  // The layers of the encoder. If the ranks divide rows, tensors are rows of this rank, here and in decode().
  Tensor encode(const Tensor& embedded, const nn::PackedLayout& layout, const nn::Context& context) const;
  Tensor decode(size_t index, const Tensor& x, const Tensor& encoded, const nn::PackedLayout& layout,
                const nn::PackedLayout& wanted, const nn::Context& context) const;

  BartConfig config_;
  nn::TensorParallel ranks_;
  std::shared_ptr<nn::VocabularyEmbedding> words_;
  std::shared_ptr<BartPositions> encoder_positions_, decoder_positions_;
  std::vector<std::shared_ptr<nn::Sharded<BartEncoderLayer>>> encoder_;
  std::vector<std::shared_ptr<nn::Sharded<BartDecoderLayer>>> decoder_;
};

// Hugging Face's BartForSequenceClassification, which classifies the decoder's state at the end-of-sequence
// token, which must be the last one of each text.
class BartForSequenceClassification : public TextModel {
 public:
  explicit BartForSequenceClassification(const BartConfig& config, const nn::TensorParallel& ranks = {});

  // Throws DataError if a text does not end with eos_token_id.
  Tensor forward(const Batch& batch, const nn::Context& context) const override;

  // Hugging Face's values: normal(0, init_std); biases and the padding row are zero, weights of norms one.
  nn::InitialValue initial_value(const nn::LayerParameter& parameter) const override;

  // Accepts files in which encoder and decoder each store the word embedding table, or that lack the "model."
  // prefix.
  WeightNames weight_names() const override;

  nlohmann::json config_json(const nlohmann::json& original) const override;
  const std::vector<std::string>& labels() const override { return config_.labels; }
  TextLimits limits() const override { return {config_.vocab_size, config_.max_position_embeddings}; }

 private:
  BartConfig config_;
  std::shared_ptr<BartModel> model_;
  std::shared_ptr<nn::Linear> dense_, out_;
};

// Creates a model for models/registry.h.
std::shared_ptr<TextModel> make_bart_sequence_classifier(const nlohmann::json& config,
                                                         const std::string& source,
                                                         const TextModelOptions& options);

}  // namespace stretto
