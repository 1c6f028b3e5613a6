#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stretto/models/sequence_tagger/config.h"
#include "stretto/models/text_model.h"
#include "stretto/nn/layers.h"
#include "stretto/nn/recurrent.h"

namespace stretto {

// Word vectors and the states of an LSTM over each word's characters, side by side; a linear map of them; a recurrent layer over the
// words of a sentence; a linear layer that scores each tag; a conditional random field. Reads input_ids (a word each) and
// characters, not position_ids and token_type_ids.
class SequenceTagger : public TextModel {
 public:
  explicit SequenceTagger(const SequenceTaggerConfig& config);

  Tensor forward(const Batch& batch, const nn::Context& context) const override;

  // Word vectors and characters uniform (Ma and Hovy 2016), maps as torch's layers, the field's scores normal(0, 0.1).
  void initialize(uint64_t seed, const std::vector<std::string>& names) override;
  WeightReport load_weights(const std::filesystem::path& folder) override;
  nlohmann::json config_json(const nlohmann::json& original) const override;
  const std::vector<std::string>& labels() const override { return config_.labels; }
  std::string characters() const override { return config_.characters; }
  std::shared_ptr<const nn::Sharded<nn::Crf>> crf() const override { return crf_; }
  int64_t vocab_size() const override { return config_.vocab_size; }
  int64_t max_length() const override { return 1'000'000; }

 private:
  Tensor embed(const Batch& batch) const;
  double initial_bound(const std::string& name, const Tensor& parameter) const;

  SequenceTaggerConfig config_;
  std::shared_ptr<nn::Embedding> words_, characters_;  // null where there are none, as the next ones
  std::shared_ptr<nn::Recurrent> character_rnn_;
  std::shared_ptr<nn::Linear> reproject_;
  std::shared_ptr<nn::Recurrent> rnn_;
  std::shared_ptr<nn::Linear> linear_;
  std::shared_ptr<nn::Sharded<nn::Crf>> crf_;
};

// For models/registry.h.
std::shared_ptr<TextModel> make_sequence_tagger(const nlohmann::json& config, const std::string& source,
                                                const TextModelOptions& options);

}  // namespace stretto
