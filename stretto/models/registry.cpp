#include "stretto/models/registry.h"

#include "stretto/base/error.h"
#include "stretto/models/bert/model.h"
#include "stretto/models/config_json.h"

namespace stretto {

const ModelRegistry& bundled_models() {
  static const ModelRegistry models("a model_type",
                                    {
                                        {.name = "bert", .sequence_classifier = make_bert_classifier},
                                    });
  return models;
}

const ModelType& model_type_of(const ModelRegistry& models, const nlohmann::json& config,
                               const std::string& source) {
  std::string name;
  ConfigJson(config, source).read("model_type", name);
  if (name.empty()) {
    throw ConfigError("{}: model_type is missing; expected one of: {}", source,
                      fmt::join(models.names(), ", "));
  }
  return models.at(name, source + ": model_type");
}

std::shared_ptr<SequenceClassifier> make_sequence_classifier(const ModelRegistry& models,
                                                             const nlohmann::json& config,
                                                             const std::string& source,
                                                             const ClassifierOptions& options) {
  const ModelType& type = model_type_of(models, config, source);
  if (!type.sequence_classifier)
    throw ConfigError("{}: model_type: \"{}\" has no sequence classification head", source, type.name);
  return type.sequence_classifier(config, source, options);
}

std::optional<std::vector<std::string>> trained_labels(const ModelRegistry& models,
                                                       const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "config.json";
  const nlohmann::json config = read_config_json(file);
  const ModelType& type = model_type_of(models, config, file.string());
  if (!hf_folder_has(folder, type.sequence_classifier_head)) return std::nullopt;
  return read_labels(config, file.string());
}

}  // namespace stretto
