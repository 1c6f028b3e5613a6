#pragma once

#include <functional>
#include <map>
#include <memory>

#include "stretto/base/registry.h"
#include "stretto/models/text_model.h"

namespace stretto {

// Creates a model from config.json; `source`: its name for messages. Throws ConfigError for unsupported
// values.
using MakeTextModel = std::function<std::shared_ptr<TextModel>(
    const nlohmann::json& config, const std::string& source, const TextModelOptions& options)>;

// A model architecture with one of its heads.
struct HeadType {
  MakeTextModel make;
  // A weight that is in a model folder if the head was trained. "": the head has none.
  std::string trained_weight = {};
  bool divides = false;       // `make` can divide the model among ranks: TextModelOptions::tensor_parallel
  bool divides_rows = false;  // and with TensorParallel::sequence
};

// A model architecture, named like model_type in config.json, with its heads by the suffix of architectures
// (heads.h): "SequenceClassification".
struct ModelType {
  std::string name;
  std::map<std::string, HeadType> heads;
};

using ModelRegistry = Registry<ModelType>;

// The built-in models. A copy with further models can be passed to tasks and pipelines.
const ModelRegistry& bundled_models();

// The type for model_type in config.json. Throws ConfigError, which lists the known types, for an unknown
// one.
const ModelType& model_type_of(const ModelRegistry& models, const nlohmann::json& config,
                               const std::string& source);

// Creates the model with a head. Throws ConfigError, which lists the heads that its type has, for another
// one, and for options.tensor_parallel if it, or its rows, cannot be divided.
std::shared_ptr<TextModel> make_text_model(const ModelRegistry& models, const std::string& head,
                                           const nlohmann::json& config, const std::string& source,
                                           const TextModelOptions& options = {});

// The labels of a trained head in a model folder; nullopt if its weights do not include the head, or its
// config.json names another head.
std::optional<std::vector<std::string>> trained_labels(const ModelRegistry& models, const std::string& head,
                                                       const std::filesystem::path& folder);

}  // namespace stretto
