#include "stretto/tasks/sequence_classification.h"

#include "stretto/base/strings.h"
#include "stretto/metrics/classification.h"
#include "stretto/models/config_json.h"
#include "stretto/nn/functional.h"

namespace stretto {
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
                                               const ModelRegistry& models)
    : ModelModule(config, Head::sequence_classification, class_names(labels), seed, models) {}

Loss SequenceClassification::training_step(const Batch& batch, StepContext& context) {
  return nn::cross_entropy(net().forward(batch, context.forward), batch.at("labels"), context.forward);
}

Tensor SequenceClassification::validation_step(const Batch& batch, StepContext& context) {
  const Tensor logits = net().forward(batch, context.forward).to(at::kCPU, at::kDouble);
  const Tensor labels = batch.has("labels") ? batch.at("labels").to(at::kCPU, at::kDouble)
                                            : at::full({batch.count}, -1.0, at::kDouble);
  return at::cat({logits, labels.unsqueeze(1)}, 1);
}

Metrics SequenceClassification::metrics(const Tensor& rows) const {
  const int64_t classes = std::ssize(net().labels());
  const Tensor logits = rows.slice(1, 0, classes).contiguous();
  const Tensor labels = rows.select(1, classes).to(at::kLong).contiguous();
  if (labels.lt(0).any().item<bool>()) return {};
  const Tensor predicted = logits.argmax(1).contiguous();
  const auto span_of = [](const Tensor& values) {
    return std::span<const int64_t>(values.const_data_ptr<int64_t>(), static_cast<size_t>(values.numel()));
  };
  Metrics result = metrics::classification_metrics(span_of(predicted), span_of(labels), classes);
  const Loss loss = nn::cross_entropy(logits, labels);
  result["loss"] = loss.sum.item<double>() / loss.count;
  return result;
}

nlohmann::json SequenceClassification::exported_config() const {
  nlohmann::json config = ModelModule::exported_config();
  write_text_pairs(config, pairs_);
  return config;
}

}  // namespace stretto
