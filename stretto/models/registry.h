#pragma once

#include <functional>
#include <memory>

#include "stretto/base/registry.h"
#include "stretto/models/sequence_classifier.h"

namespace stretto {

// A model architecture, as config.json's model_type names it, and what stretto can build of it. A head that it does not
// have is left empty.
struct ModelType {
  std::string name;

  // From config.json; `source` is its name for messages. Throws ConfigError for values that are not supported.
  std::function<std::shared_ptr<SequenceClassifier>(const nlohmann::json& config, const std::string& source,
                                                    const ClassifierOptions& options)>
      sequence_classifier = {};

  // The weight whose presence in a model folder says that this head was trained.
  std::string sequence_classifier_head = "classifier.weight";
};

using ModelRegistry = Registry<ModelType>;

// The models that stretto has. A copy with more of them can be given to tasks and pipelines.
const ModelRegistry& bundled_models();

// The type that config.json's model_type names. Throws ConfigError that lists the known ones.
const ModelType& model_type_of(const ModelRegistry& models, const nlohmann::json& config,
                               const std::string& source);

// Builds the model with a classification head. Throws ConfigError where its type has none.
std::shared_ptr<SequenceClassifier> make_sequence_classifier(const ModelRegistry& models,
                                                             const nlohmann::json& config,
                                                             const std::string& source,
                                                             const ClassifierOptions& options = {});

// The labels that a folder's classification head was trained for; nothing where its weights hold no head.
std::optional<std::vector<std::string>> trained_labels(const ModelRegistry& models,
                                                       const std::filesystem::path& folder);

}  // namespace stretto
