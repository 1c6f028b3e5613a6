#pragma once

#include <memory>
#include <vector>

#include "stretto/model_config/distilbert.h"
#include "stretto/models/blocks.h"
#include "stretto/models/text_model.h"
#include "stretto/nn/sharded.h"
#include "stretto/nn/tensor_parallel.h"

namespace stretto {

class DistilBertLayer : public torch::nn::Module {
 public:
  DistilBertLayer(const DistilBertConfig& config, uint64_t first_site, const nn::TensorParallel& ranks);

  // Maps x [T, H], the rows of `layout`, to the rows of `wanted`, [., H]: `layout`, or layout.first_tokens().
  Tensor forward(const Tensor& x, const nn::PackedLayout& layout, const nn::PackedLayout& wanted,
                 const nn::Context& context) const;

  static constexpr uint64_t sites = 3;  // dropout sites

 private:
  AttentionBlock attention_;
  MlpBlock mlp_;
};

// The sum of word and position embeddings, normalised.
class DistilBertEmbeddings : public torch::nn::Module {
 public:
  DistilBertEmbeddings(const DistilBertConfig& config, const nn::TensorParallel& ranks);

  // The batch's input_ids [T] -> [T, H]. Throws DataError for sequences longer than the model supports.
  Tensor forward(const Batch& batch, const nn::PackedLayout& layout, const nn::Context& context) const;

 private:
  int64_t max_length_;
  double dropout_;
  std::shared_ptr<nn::VocabularyEmbedding> words_;
  std::shared_ptr<nn::Embedding> positions_;
  std::shared_ptr<nn::LayerNorm> norm_;
};

// Parameter names are those of Hugging Face's DistilBertModel.
class DistilBertModel : public torch::nn::Module {
 public:
  DistilBertModel(const DistilBertConfig& config, const nn::TensorParallel& ranks);

  // Maps the batch's input_ids [T] to the rows of `wanted` of the last layer, [., H]: `layout`, or
  // layout.first_tokens().
  Tensor forward(const Batch& batch, const nn::PackedLayout& layout, const nn::PackedLayout& wanted,
                 const nn::Context& context) const;

  // The states of `layers`, as BertModel::forward_layers.
  Tensor forward_layers(const Batch& batch, const nn::PackedLayout& layout, const nn::Context& context,
                        const std::vector<int64_t>& layers) const;

 private:
  Tensor run_layer(size_t index, const Tensor& hidden, const nn::PackedLayout& layout,
                   const nn::PackedLayout& wanted, const nn::Context& context) const;

  nn::TensorParallel ranks_;
  std::shared_ptr<nn::Sharded<DistilBertEmbeddings>> embeddings_;
  std::vector<std::shared_ptr<nn::Sharded<DistilBertLayer>>> layers_;
};

// Hugging Face's DistilBertForSequenceClassification, ...TokenClassification and ...QuestionAnswering, and
// DistilBertModel.
class DistilBertWithHead : public TextModel {
 public:
  // `layers`: of hidden_states.
  DistilBertWithHead(const DistilBertConfig& config, const std::string& head,
                     std::vector<int64_t> layers = {}, const nn::TensorParallel& ranks = {});

  Tensor forward(const Batch& batch, const nn::Context& context) const override;
  nn::InitialValue initial_value(const nn::LayerParameter& parameter) const override;

  // Accepts encoders without the "distilbert." prefix.
  WeightNames weight_names() const override;

  nlohmann::json config_json(const nlohmann::json& original) const override;
  const std::vector<std::string>& labels() const override { return config_.labels; }
  TextLimits limits() const override { return {config_.vocab_size, config_.max_position_embeddings}; }
  Capabilities capabilities() const override {
    return {.hidden_states = out_ == nullptr ? &shape_ : nullptr};
  }

 private:
  DistilBertConfig config_;
  std::string head_;
  std::vector<int64_t> layers_;
  HiddenStates shape_;
  std::shared_ptr<DistilBertModel> encoder_;
  std::shared_ptr<nn::Linear> before_;  // for sequence classification; else null
  std::shared_ptr<nn::Linear> out_;     // null for hidden_states
};

// Creates a model for models/registry.h.
std::shared_ptr<TextModel> make_distilbert(const std::string& head, const nlohmann::json& config,
                                           const std::string& source, const TextModelOptions& options);

}  // namespace stretto
