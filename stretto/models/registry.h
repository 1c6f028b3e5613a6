#pragma once

#include <functional>
#include <memory>

#include "stretto/base/registry.h"
#include "stretto/models/text_model.h"

namespace stretto {

// Creates a model from config.json; `source`: its name for messages. Throws ConfigError for unsupported values.
using MakeTextModel = std::function<std::shared_ptr<TextModel>(
    const nlohmann::json& config, const std::string& source, const TextModelOptions& options)>;

// A model architecture, named as model_type in config.json, with functions to create it with each head. Heads that it
// does not support are empty.
struct ModelType {
  std::string name;
  MakeTextModel sequence_classifier = {};
  MakeTextModel token_classifier = {};
  MakeTextModel question_answerer = {};
  MakeTextModel hidden_states = {};

  // The weights that are present in a model folder if the head was trained.
  std::string sequence_classifier_head = "classifier.weight";
  std::string token_classifier_head = "classifier.weight";
  std::string question_answerer_head = "qa_outputs.weight";
};

using ModelRegistry = Registry<ModelType>;

// The built-in models. A copy with further models can be passed to tasks and pipelines.
const ModelRegistry& bundled_models();

// The type for model_type in config.json. Throws ConfigError, which lists the known types, for an unknown one.
const ModelType& model_type_of(const ModelRegistry& models, const nlohmann::json& config,
                               const std::string& source);

// Creates the model with a head. Throws ConfigError if its type does not support the head.
std::shared_ptr<TextModel> make_text_model(const ModelRegistry& models, Head head,
                                           const nlohmann::json& config, const std::string& source,
                                           const TextModelOptions& options = {});

// The labels of a trained head in a model folder; nullopt if its weights hold none, or its config.json names another
// head.
std::optional<std::vector<std::string>> trained_labels(const ModelRegistry& models, Head head,
                                                       const std::filesystem::path& folder);

}  // namespace stretto
