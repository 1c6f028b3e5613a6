#pragma once

#include "stretto/tasks/model_module.h"

namespace stretto::tasks {

// Trains a causal decoder to predict each next token, on the packed batches of a data::BlockDataset.
class CausalLanguageModel : public ModelModule {
 public:
  // As ModelModule. Throws ConfigError for a model that is not a causal decoder.
  CausalLanguageModel(const ModelConfig& config, uint64_t seed,
                      const ModelRegistry& models = bundled_models());

  // The bytes of text per token of the data that are evaluated from now on; 0: not known, and no bits per
  // byte.
  void evaluate_on(double bytes_per_token) { bytes_per_token_ = bytes_per_token; }

  // The sum of the cross entropies of the predicted tokens, and their number.
  Loss training_step(const Batch& batch, StepContext& context) override;

  // One row per sample: the sum of the cross entropies of its predicted tokens, their number, and how many of
  // them have the largest logit.
  Predictions validation_step(const Batch& batch, StepContext& context) override;

  // loss: nats per predicted token; perplexity; accuracy; bits_per_byte, if the bytes per token are known.
  Metrics metrics(const Predictions& predictions) const override;

 private:
  const CausalDecoder& decoder() const { return *net().capabilities().causal_decoder; }

  double bytes_per_token_ = 0;
};

}  // namespace stretto::tasks
