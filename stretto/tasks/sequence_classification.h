#pragma once

#include <string>
#include <vector>

#include "stretto/tasks/model_module.h"

namespace stretto {

// Fine-tunes a model with a classification head on packed batches with labels.
class SequenceClassification : public ModelModule {
 public:
  // As ModelModule.
  SequenceClassification(const ModelConfig& config, const std::vector<std::string>& labels, uint64_t seed,
                         const ModelRegistry& models = bundled_models());

  Loss training_step(const Batch& batch, StepContext& context) override;

  // One row per sample: its logits, then its label (-1 without one).
  Tensor validation_step(const Batch& batch, StepContext& context) override;

  // Mean loss and classification metrics; empty if samples have no labels.
  Metrics metrics(const Tensor& rows) const override;

  nlohmann::json exported_config() const override;

  // Whether samples are pairs of texts, which is recorded in config.json.
  void record_pairs(bool pairs) { pairs_ = pairs; }

 private:
  bool pairs_ = false;
};

}  // namespace stretto
