#include "stretto/tasks/sequence_classification.h"

#include "stretto/base/strings.h"
#include "stretto/model_config/config_json.h"
#include "stretto/model_config/heads.h"

namespace stretto::tasks {
namespace {

// Labels that are numbers are named LABEL_0, LABEL_1, ..., as in Hugging Face.
std::vector<std::string> class_names(const std::vector<std::string>& labels) {
  std::vector<std::string> names;
  for (const std::string& name : labels) names.push_back(parse_int(name) ? "LABEL_" + name : name);
  return names;
}

}  // namespace

SequenceClassification::SequenceClassification(const ModelConfig& config,
                                               const std::vector<std::string>& labels, uint64_t seed,
                                               const ModelRegistry& models, ClassificationSettings settings,
                                               const nn::TensorParallel& ranks)
    : ModelModule(config, heads::sequence_classification, class_names(labels), seed, models, ranks),
      settings_(std::move(settings)) {}

Loss SequenceClassification::training_step(const Batch& batch, StepContext& context) {
  return classification_loss(net().forward(batch, context.forward), batch.at("labels"), settings_,
                             context.forward);
}

Predictions SequenceClassification::validation_step(const Batch& batch, StepContext& context) {
  return classification_rows(net().forward(batch, context.forward),
                             batch.has("labels") ? batch.at("labels") : Tensor(), settings_.problem);
}

Metrics SequenceClassification::metrics(const Predictions& predictions) const {
  return results(predictions).metrics();
}

nlohmann::json SequenceClassification::exported_config() const {
  nlohmann::json config = ModelModule::exported_config();
  config["problem_type"] = name_of(settings_.problem);
  write_text_pairs(config, pairs_);
  return config;
}

}  // namespace stretto::tasks
