#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "stretto/base/registry.h"
#include "stretto/models/registry.h"
#include "stretto/serve/pipeline_input.h"

namespace stretto {

class Group;
class TextGenerator;
struct TextGeneratorOptions;

// Inference with a trained model folder: from texts to JSON records. Const member functions are thread-safe.
class Pipeline {
 public:
  virtual ~Pipeline() = default;

  virtual InputKind input_kind() const = 0;

  // Returns one record per input, which must be of input_kind(). `output`: the content of a record besides
  // the texts, as in `stretto predict --output`; "pipeline": what Hugging Face's pipeline returns, without
  // the texts. Throws ConfigError for an unknown output, DataError for results that are not finite.
  virtual std::vector<nlohmann::ordered_json> predict(std::span<const PipelineInput> inputs,
                                                      const std::string& output) const = 0;
};

// How a pipeline computes, and what its records contain.
struct PipelineOptions {
  at::ScalarType dtype = at::kFloat;
  at::Device device = at::kCPU;
  bool allow_nonfinite = false;  // load weights that contain NaN or infinity
  // On CPU, compute matmuls by the fastest library (parallel/matmul_libraries.h), measured once per processor
  // and cached in the user's cache folder. Affects the whole process.
  bool choose_matmul_libraries = false;
  // The ranks that load the model together and compute matmuls by the same libraries; null: this process.
  Group* group = nullptr;
  // Token classification: how tokens become entities, as in Hugging Face: none, simple (the default), first,
  // average or max.
  std::optional<std::string> aggregation_strategy = {};
  // The number of classes per text (text classification) or of answers per question (question answering).
  // Unset: one result, which is not in a list.
  std::optional<int64_t> top_k = {};
  // Question answering: allows the answer "", whose score is that of there being no answer.
  bool handle_impossible_answer = false;
  OptionNames names = {};
};

// The pipeline of a head, and the function that makes one from a model folder.
struct PipelineType {
  std::string name;                  // of the head in config.json's architectures: "SequenceClassification"
  std::string task;                  // "text-classification", for messages
  std::vector<std::string> outputs;  // of Pipeline::predict, the default first
  // The names of members of PipelineOptions and InputParser that not every task has: "top_k".
  std::vector<std::string> options;
  std::function<std::unique_ptr<Pipeline>(const std::filesystem::path& folder, const PipelineOptions& options,
                                          const ModelRegistry& models)>
      make;
};

// PipelineType::make of a class that is constructed from the same arguments.
template <class Kind>
std::unique_ptr<Pipeline> make_pipeline(const std::filesystem::path& folder, const PipelineOptions& options,
                                        const ModelRegistry& models) {
  return std::make_unique<Kind>(folder, options, models);
}

using PipelineRegistry = Registry<PipelineType>;

// The built-in pipelines.
const PipelineRegistry& bundled_pipelines();

// The pipeline for the architecture in the folder's config.json. Throws ConfigError if there is none for it.
const PipelineType& pipeline_type(const std::filesystem::path& folder,
                                  const PipelineRegistry& pipelines = bundled_pipelines());

// Throws ConfigError if `option`, one of PipelineType::options, does not apply to the model in `folder`;
// reads config.json only.
void require_option(const std::filesystem::path& folder, const std::string& option,
                    const PipelineRegistry& pipelines = bundled_pipelines(), const OptionNames& names = {});

// Creates the pipeline. Throws ConfigError also for options of another task, DataError if weights are missing
// or not finite.
std::unique_ptr<Pipeline> load_pipeline(const std::filesystem::path& folder,
                                        const PipelineOptions& options = {},
                                        const ModelRegistry& models = bundled_models(),
                                        const PipelineRegistry& pipelines = bundled_pipelines());

// Creates a generator of texts with the language model of a folder; `options` are not those of its
// generation_config.json, unless read_generation_config() has read them. Of `loading`, dtype,
// device, allow_nonfinite, choose_matmul_libraries and group apply. Throws ConfigError for a model of another
// kind and for options out of range, DataError if weights are missing or not finite.
//
//   auto generator = load_text_generator("runs/lm/model", {.on_text = print});
//   generator->add("Once upon");
//   generator->finish();
std::unique_ptr<TextGenerator> load_text_generator(const std::filesystem::path& folder,
                                                   TextGeneratorOptions options,
                                                   const PipelineOptions& loading = {},
                                                   const ModelRegistry& models = bundled_models());

}  // namespace stretto
