#pragma once

#include <optional>

#include "stretto/tasks/model_module.h"
#include "stretto/text/tokenizer.h"

namespace stretto::tasks {

// Trains a causal decoder to predict each next token, on the packed batches of a data::BlockDataset.
class CausalLanguageModel : public ModelModule {
 public:
  // Takes what ModelModule does. Throws ConfigError for a model that is not a causal decoder, or that cannot
  // be divided among `ranks`.
  CausalLanguageModel(const ModelConfig& config, uint64_t seed,
                      const ModelRegistry& models = bundled_models(), const nn::TensorParallel& ranks = {});

  // The bytes of text per token of the data that are evaluated from now on; 0: not known, and no bits per
  // byte.
  void evaluate_on(double bytes_per_token) { bytes_per_token_ = bytes_per_token; }

  // Allows continue_texts(), with the model's tokenizer. Throws ConfigError, which begins with `setting`, for
  // texts that the model cannot continue.
  void write_with(text::Tokenizer tokenizer, const std::vector<std::string>& texts,
                  const std::string& setting);

  // Makes the exported config.json name the token that ends a text, unless the model's own does.
  void end_texts_with(std::optional<int32_t> token) { end_token_ = token; }

  nlohmann::json exported_config() const override;

  // This also writes the generation_config.json of the model that training started from.
  void save_companions(const std::filesystem::path& folder) const override;

  // The sum of the cross entropies of the predicted tokens, and their number.
  Loss training_step(const Batch& batch, StepContext& context) override;

  // One row per sample: the sum of the cross entropies of its predicted tokens, their number, and how many of
  // them have the largest logit.
  Predictions validation_step(const Batch& batch, StepContext& context) override;

  // loss: nats per predicted token; perplexity; accuracy; bits_per_byte, if the bytes per token are known.
  Metrics metrics(const Predictions& predictions) const override;

  // Takes the most probable tokens, at most 64. REQUIRES: write_with() was called.
  std::vector<std::string> continue_texts(const std::vector<std::string>& texts, nn::Kernels kernels,
                                          const std::function<bool(bool)>& next_pass) override;

 private:
  const CausalDecoder& decoder() const { return *net().capabilities().causal_decoder; }

  std::optional<text::Tokenizer> tokenizer_;
  std::optional<int32_t> end_token_;
  double bytes_per_token_ = 0;
  std::string generation_config_;  // the file's text; "": the model's folder has none
};

}  // namespace stretto::tasks
