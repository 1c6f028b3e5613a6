#pragma once

#include <string>
#include <vector>

#include "stretto/tasks/classification_results.h"
#include "stretto/tasks/model_module.h"

namespace stretto::tasks {

// Fine-tunes a model with a classification head on packed batches with labels: classes, numbers, or any
// number of classes per text.
class SequenceClassification : public ModelModule {
 public:
  // The arguments are those of ModelModule. `labels`: names of the classes; one for a regression.
  SequenceClassification(const ModelConfig& config, const std::vector<std::string>& labels, uint64_t seed,
                         const ModelRegistry& models = bundled_models(), ClassificationSettings settings = {},
                         const nn::TensorParallel& ranks = {});

  Loss training_step(const Batch& batch, StepContext& context) override;

  // classification_rows().
  Predictions validation_step(const Batch& batch, StepContext& context) override;

  // The metrics of ClassificationResults.
  Metrics metrics(const Predictions& predictions) const override;

  std::string table(const Predictions& predictions) const override { return results(predictions).tables(); }

  nlohmann::json exported_config() const override;

  // The predictions for a dataset, from its rows.
  ClassificationResults results(const Predictions& predictions) const {
    return {predictions.rows, net().labels(), settings_};
  }

  // Whether samples are pairs of texts, which is recorded in config.json.
  void record_pairs(bool pairs) { pairs_ = pairs; }

 private:
  ClassificationSettings settings_;
  bool pairs_ = false;
};

}  // namespace stretto::tasks
