#include "stretto/tasks/sequence_classification.h"

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/json.h"
#include "stretto/base/log.h"
#include "stretto/base/strings.h"
#include "stretto/metrics/classification.h"
#include "stretto/tensor/hf_folder.h"

namespace stretto {
namespace {

std::filesystem::path config_file(const ModelConfig& config) {
  return config.path ? *config.path / "config.json" : config.config.value();
}

// Hugging Face calls classes that have numbers in place of names LABEL_0, LABEL_1, ...
std::vector<std::string> class_names(const data::LabelSet& labels) {
  std::vector<std::string> names;
  for (const std::string& name : labels.names()) names.push_back(parse_int(name) ? "LABEL_" + name : name);
  return names;
}

void copy_tokenizer(const std::filesystem::path& source, bool lowercase,
                    const std::filesystem::path& folder) {
  const bool one_file = !std::filesystem::is_directory(source);
  for (const char* name :
       {"tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json"}) {
    const std::filesystem::path file = one_file ? source : source / name;
    if (one_file && source.filename() != name) continue;
    if (std::filesystem::exists(file)) write_file_atomic(folder / name, read_file(file));
  }
  if (!std::filesystem::exists(folder / "tokenizer_config.json")) {
    const nlohmann::ordered_json config = {{"tokenizer_class", "BertTokenizer"},
                                           {"do_lower_case", lowercase}};
    write_file_atomic(folder / "tokenizer_config.json", config.dump(2) + "\n");
  }
}

}  // namespace

SequenceClassification::SequenceClassification(const ModelConfig& config, const data::LabelSet& labels,
                                               uint64_t seed)
    : original_config_(read_json(config_file(config))) {
  BertConfig bert = BertConfig::from_json(original_config_, config_file(config).string());
  bert.set_labels(class_names(labels));
  if (config.dropout) bert.set_dropout(*config.dropout);
  model_ = model(std::make_shared<BertForSequenceClassification>(bert));
  if (!config.path) {
    model_->initialize(seed);
    log::info("random weights (model.config names no folder with weights)");
    return;
  }
  const WeightReport report = model_->load(*config.path);
  model_->initialize(seed, report.missing);
  if (!report.missing.empty()) {
    log::info("new weights, to be trained (not in {}): {}", config.path->string(),
              fmt::join(report.missing, ", "));
  }
  if (!report.unexpected.empty()) {
    log::info("weights of {} that this model has no use for: {}", config.path->string(),
              fmt::join(report.unexpected, ", "));
  }
}

Loss SequenceClassification::training_step(const Batch& batch, StepContext& context) {
  return nn::cross_entropy(model_->forward(batch, context.forward), batch.at("labels"), context.forward);
}

Tensor SequenceClassification::validation_step(const Batch& batch, StepContext& context) {
  const Tensor logits = model_->forward(batch, context.forward).to(at::kCPU, at::kDouble);
  const Tensor labels = batch.has("labels") ? batch.at("labels").to(at::kCPU, at::kDouble)
                                            : at::full({batch.count}, -1.0, at::kDouble);
  return at::cat({logits, labels.unsqueeze(1)}, 1);
}

Metrics SequenceClassification::metrics(const Tensor& rows) const {
  const int64_t classes = config().num_labels();
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

void SequenceClassification::save(const std::filesystem::path& folder, const NamedTensors& weights) const {
  write_file_atomic(folder / "config.json",
                    config().to_json(original_config_, "BertForSequenceClassification").dump(2) + "\n");
  save_safetensors(folder / "model.safetensors", weights);
  if (!tokenizer_.empty()) copy_tokenizer(tokenizer_, lowercase_, folder);
}

// That of config.json, before the recipe's model.dropout: the recipe is compared by itself.
nlohmann::json SequenceClassification::model_config() const {
  nlohmann::json config = original_config_;
  for (const char* origin : {"_name_or_path", "transformers_version", "architectures"}) config.erase(origin);
  return config;
}

void SequenceClassification::ship_tokenizer(const std::filesystem::path& tokenizer, bool lowercase) {
  tokenizer_ = tokenizer;
  lowercase_ = lowercase;
}

std::optional<data::LabelSet> trained_labels(const ModelConfig& config) {
  if (!config.path || !hf_folder_has(*config.path, "classifier.weight")) return std::nullopt;
  std::vector<std::string> names;
  for (const auto& [id, name] : BertConfig::read(config_file(config)).id2label) names.push_back(name);
  return data::LabelSet(names);
}

}  // namespace stretto
