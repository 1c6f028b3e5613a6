#pragma once

#include <memory>
#include <vector>

#include "stretto/model_config/bert.h"
#include "stretto/models/text_model.h"
#include "stretto/nn/layers.h"
#include "stretto/nn/sharded.h"

namespace stretto {

class BertEmbeddings;
class BertLayer;

// Embeddings, layers and pooler. Parameter names are those of Hugging Face's BertModel.
class BertModel : public torch::nn::Module {
 public:
  // sparse_words: the word embedding table is used for lookup only (nn::Embedding). Without a pooler, pool()
  // may not be called.
  explicit BertModel(const BertConfig& config, bool sparse_words = true, bool with_pooler = true,
                     const nn::TensorParallel& ranks = {});
  ~BertModel() override;

  // The batch's input_ids and token_type_ids [T] -> hidden states [T, H]. Throws DataError for sequences
  // longer than the model supports.
  Tensor forward(const Batch& batch, const nn::PackedLayout& layout, const nn::Context& context) const;

  // The hidden states of `layers`, numbered as by layer_numbers, side by side: [T, layers * H]. Later layers
  // are not computed.
  Tensor forward_layers(const Batch& batch, const nn::PackedLayout& layout, const nn::Context& context,
                        const std::vector<int64_t>& layers) const;

  // The hidden states of the first token of each sequence only, [B, H]: the last layer skips the other
  // tokens.
  Tensor forward_first(const Batch& batch, const nn::PackedLayout& layout, const nn::Context& context) const;

  // tanh(Linear(first)); first [B, H]: the hidden states of first tokens.
  Tensor pool(const Tensor& first) const;

 private:
  Tensor embed(const Batch& batch, const nn::PackedLayout& layout, const nn::Context& context) const;
  Tensor run_layer(size_t index, const Tensor& hidden, const nn::PackedLayout& layout,
                   const nn::PackedLayout& wanted, const nn::Context& context) const;

  nn::TensorParallel ranks_;
  std::shared_ptr<nn::Sharded<BertEmbeddings>> embeddings_;
  std::shared_ptr<nn::Linear> projection_;  // null if the embeddings are as wide as the layers
  std::vector<std::shared_ptr<nn::Sharded<BertLayer>>> layers_;
  std::shared_ptr<nn::Linear> pooler_;  // null if there is no pooler
};

// The part of a BERT, RoBERTa or ELECTRA with a head that does not depend on the head.
class BertWithHead : public TextModel {
 public:
  // Hugging Face's values: normal(0, initializer_range); biases and the padding row are zero, weights of
  // norms one.
  nn::InitialValue initial_value(const nn::LayerParameter& parameter) const override;

  // Accepts old names (gamma, beta, no "bert." prefix).
  WeightNames weight_names() const override;

  nlohmann::json config_json(const nlohmann::json& original) const override;
  const std::vector<std::string>& labels() const override { return config_.labels; }
  TextLimits limits() const override { return {config_.vocab_size, config_.max_length()}; }

  const BertConfig& config() const { return config_; }

 protected:
  BertWithHead(const BertConfig& config, const std::string& head, bool sparse_words,
               const nn::TensorParallel& ranks);

  // dropout(x) before the head, or inside it (`index` 1). x: the rows of `layout`.
  Tensor head_dropout(const Tensor& x, const nn::PackedLayout& layout, const nn::Context& context,
                      uint64_t index = 0) const;

  BertConfig config_;
  std::string head_;
  std::shared_ptr<BertModel> bert_;
};

// Hugging Face's BertForSequenceClassification, which classifies the first token's pooled state.
class BertForSequenceClassification : public BertWithHead {
 public:
  explicit BertForSequenceClassification(const BertConfig& config, const nn::TensorParallel& ranks = {},
                                         bool sparse_words = true);
  Tensor forward(const Batch& batch, const nn::Context& context) const override;

 private:
  std::shared_ptr<nn::Linear> classifier_;
};

// Sequence classification of the variants without a pooler (RobertaForSequenceClassification,
// ElectraForSequenceClassification), of the first token's state after a layer of the head.
class BertWithLayeredClassifier : public BertWithHead {
 public:
  explicit BertWithLayeredClassifier(const BertConfig& config, const nn::TensorParallel& ranks = {});
  Tensor forward(const Batch& batch, const nn::Context& context) const override;

 private:
  nn::Activation activation_;
  std::shared_ptr<nn::Linear> dense_, out_;
};

// Hugging Face's BertForTokenClassification, which classifies each token's state.
class BertForTokenClassification : public BertWithHead {
 public:
  explicit BertForTokenClassification(const BertConfig& config, const nn::TensorParallel& ranks = {});
  Tensor forward(const Batch& batch, const nn::Context& context) const override;

 private:
  std::shared_ptr<nn::Linear> classifier_;
};

// Hugging Face's BertForQuestionAnswering, which computes two scores for each token, without dropout.
class BertForQuestionAnswering : public BertWithHead {
 public:
  explicit BertForQuestionAnswering(const BertConfig& config, const nn::TensorParallel& ranks = {});
  Tensor forward(const Batch& batch, const nn::Context& context) const override;

 private:
  std::shared_ptr<nn::Linear> outputs_;
};

// Creates a model for models/registry.h.
std::shared_ptr<TextModel> make_bert_sequence_classifier(const nlohmann::json& config,
                                                         const std::string& source,
                                                         const TextModelOptions& options);
std::shared_ptr<TextModel> make_layered_bert_sequence_classifier(const nlohmann::json& config,
                                                                 const std::string& source,
                                                                 const TextModelOptions& options);
std::shared_ptr<TextModel> make_bert_token_classifier(const nlohmann::json& config, const std::string& source,
                                                      const TextModelOptions& options);
std::shared_ptr<TextModel> make_bert_question_answerer(const nlohmann::json& config,
                                                       const std::string& source,
                                                       const TextModelOptions& options);
std::shared_ptr<TextModel> make_bert_hidden_states(const nlohmann::json& config, const std::string& source,
                                                   const TextModelOptions& options);

}  // namespace stretto
