#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "stretto/base/registry.h"
#include "stretto/models/registry.h"

namespace stretto {

// What one prediction is made from. text_pair is empty for models of single texts.
struct PipelineInput {
  std::string text;
  std::string text_pair = {};
};

// A trained model folder as a function from texts to JSON records. Const member functions are thread-safe.
class Pipeline {
 public:
  virtual ~Pipeline() = default;

  // Whether each input is a pair of texts.
  virtual bool takes_pairs() const = 0;

  // One record per input. `output`: what a record holds besides the texts, as in `stretto predict --output`. Throws
  // ConfigError for an output that the pipeline does not have, DataError for results that are not finite.
  virtual std::vector<nlohmann::ordered_json> predict(std::span<const PipelineInput> inputs,
                                                      const std::string& output) const = 0;
};

struct PipelineOptions {
  at::ScalarType dtype = at::kFloat;
  bool allow_nonfinite = false;  // load weights that hold NaN or infinity
};

struct PipelineType {
  std::string name;  // of the head, as in config.json's architectures: "SequenceClassification"
  std::function<std::unique_ptr<Pipeline>(const std::filesystem::path& folder, const PipelineOptions& options,
                                          const ModelRegistry& models)>
      make;
};

using PipelineRegistry = Registry<PipelineType>;

// The pipelines that stretto has.
const PipelineRegistry& bundled_pipelines();

// The pipeline for the model in `folder`, by the architecture that its config.json names. Throws ConfigError for one that
// has no pipeline, DataError for a folder that lacks weights or holds weights that are not finite.
std::unique_ptr<Pipeline> load_pipeline(const std::filesystem::path& folder,
                                        const PipelineOptions& options = {},
                                        const ModelRegistry& models = bundled_models(),
                                        const PipelineRegistry& pipelines = bundled_pipelines());

}  // namespace stretto
