#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stretto/model_config/sequence_tagger.h"
#include "stretto/models/crf_labeller.h"
#include "stretto/models/text_model.h"
#include "stretto/nn/layers.h"
#include "stretto/nn/recurrent.h"

namespace stretto {

// Word vectors, the states of an LSTM over each word's characters and a transformer's states, side by side; a
// linear map of them; a recurrent layer over the words of a sentence; a linear layer that scores each tag; a
// conditional random field. Reads input_ids (a word each) and characters, not token_type_ids; with a
// transformer, whose tokens the input_ids then are, data::WordRows, and all tokens of a word have its scores.
class SequenceTagger : public TextModel, private FrozenStates {
 public:
  // `transformer`: the hidden states of config.transformer, [T, layers * H]; null if there is none.
  explicit SequenceTagger(const SequenceTaggerConfig& config,
                          std::shared_ptr<TextModel> transformer = nullptr);

  Tensor forward(const Batch& batch, const nn::Context& context) const override;

  // Word vectors are uniform (Ma and Hovy 2016), character vectors and linear maps are initialised like
  // torch's layers, and the scores of the conditional random field are normal(0, 0.1).
  nn::InitialValue initial_value(const nn::LayerParameter& parameter) const override;

  // The weights of a new tagger's transformer are in config.transformer_path.
  WeightNames weight_names() const override;
  nlohmann::json config_json(const nlohmann::json& original) const override;
  const std::vector<std::string>& labels() const override { return config_.labels; }
  TextLimits limits() const override {
    return transformer_ ? transformer_->limits() : TextLimits{config_.vocab_size, 1'000'000};
  }
  Capabilities capabilities() const override;

 private:
  // FrozenStates, of a transformer that is not trained.
  int64_t width() const override;
  Tensor compute(const Batch& batch, const nn::Context& context) const override;

  // Rows of a batch for a transformer: the row of each word's first token, the rows of all its tokens, and
  // the index of each token's word.
  struct Rows {
    explicit Rows(const Batch& batch);
    Tensor first, tokens, of_tokens;
  };
  // The words of a batch: all tokens, or those that WordRows name.
  struct Words {
    std::optional<nn::PackedLayout> layout;  // unset: there are none
    Tensor vectors;                          // [words, width]
    std::optional<Rows> rows = {};           // with a transformer
  };
  Words embed(const Batch& batch, const nn::Context& context) const;
  Words embed_whole_words(const Batch& batch, const nn::Context& context) const;
  Tensor transformer_states(const Batch& batch, const Rows& rows, const nn::Context& context) const;
  Tensor pooled(Tensor states, const Rows& rows) const;
  Tensor score(const Words& words, const nn::Context& context) const;
  uint64_t number_of(int site) const;
  double initial_bound(const std::string& name) const;

  SequenceTaggerConfig config_;
  std::shared_ptr<TextModel> transformer_;             // null if there is none
  std::shared_ptr<nn::Embedding> words_, characters_;  // null if not used; so are the next ones
  std::shared_ptr<nn::Recurrent> character_rnn_;
  std::shared_ptr<nn::Linear> reproject_;
  std::shared_ptr<nn::Recurrent> rnn_;
  std::shared_ptr<nn::Linear> linear_;
  WordReader words_read_;
  std::optional<CrfLabeller> labeller_;
};

// Creates a model for models/registry.h. Only the transformer's layers are divided among ranks.
std::shared_ptr<TextModel> make_sequence_tagger(const nlohmann::json& config, const std::string& source,
                                                const TextModelOptions& options);

}  // namespace stretto
