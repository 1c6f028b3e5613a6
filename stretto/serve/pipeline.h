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

// The input of one prediction. text_pair is empty for models of single texts; for question answering, text is the question and
// text_pair the context.
struct PipelineInput {
  std::string text;
  std::string text_pair = {};
};

// Inference with a trained model folder: from texts to JSON records. Const member functions are thread-safe.
class Pipeline {
 public:
  virtual ~Pipeline() = default;

  // Whether each input is a pair of texts.
  virtual bool takes_pairs() const = 0;

  // Returns one record per input. `output`: the content of a record besides the texts, as in `stretto predict
  // --output`. Throws ConfigError for an unknown output, DataError for results that are not finite.
  virtual std::vector<nlohmann::ordered_json> predict(std::span<const PipelineInput> inputs,
                                                      const std::string& output) const = 0;
};

struct PipelineOptions {
  at::ScalarType dtype = at::kFloat;
  bool allow_nonfinite = false;  // load weights that hold NaN or infinity
  // Compute matrix products by the fastest library (parallel/run_products.h), measured once per processor and kept in the
  // user's cache folder. Affects the whole process.
  bool choose_products = false;
  // Token classification: how tokens become entities, as in Hugging Face: none, simple, first, average or max.
  std::string aggregation_strategy = "simple";
  int64_t top_k = 1;  // question answering: answers per question
};

struct PipelineType {
  std::string name;  // of the head in config.json's architectures: "SequenceClassification"
  std::function<std::unique_ptr<Pipeline>(const std::filesystem::path& folder, const PipelineOptions& options,
                                          const ModelRegistry& models)>
      make;
};

using PipelineRegistry = Registry<PipelineType>;

// The built-in pipelines.
const PipelineRegistry& bundled_pipelines();

// Creates the pipeline for the architecture in the folder's config.json. Throws ConfigError if there is none for it,
// DataError if weights are missing or not finite.
std::unique_ptr<Pipeline> load_pipeline(const std::filesystem::path& folder,
                                        const PipelineOptions& options = {},
                                        const ModelRegistry& models = bundled_models(),
                                        const PipelineRegistry& pipelines = bundled_pipelines());

}  // namespace stretto
