#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/model_config/config_json.h"
#include "stretto/serve/entity_finder.h"
#include "stretto/serve/pipeline.h"
#include "stretto/serve/question_answerer.h"
#include "stretto/serve/text_classifier.h"
#include "stretto/serve/text_generation.h"

namespace stretto {

const PipelineRegistry& bundled_pipelines() {
  static const PipelineRegistry pipelines("a model head", {
                                                              serve::text_classification_pipeline(),
                                                              serve::token_classification_pipeline(),
                                                              serve::question_answering_pipeline(),
                                                              serve::text_generation_pipeline(),
                                                          });
  return pipelines;
}

const PipelineType& pipeline_type(const std::filesystem::path& folder, const PipelineRegistry& pipelines) {
  const std::filesystem::path file = folder / "config.json";
  const std::string architecture = architecture_of(read_config_json(file));
  const std::string head = head_of(architecture);
  if (head.empty()) {
    throw ConfigError(
        "{}: architectures: \"{}\" is a model without a head; expected a fine-tuned one (...For{}), such as RUN/model written by `stretto train`",
        file.string(), architecture, fmt::join(pipelines.names(), ", ...For"));
  }
  return pipelines.at(head, file.string() + ": architectures");
}

void require_option(const std::filesystem::path& folder, const std::string& option,
                    const PipelineRegistry& pipelines, const OptionNames& names) {
  const PipelineType& type = pipeline_type(folder, pipelines);
  const auto has_option = [&](const PipelineType& one) {
    return std::ranges::find(one.options, option) != one.options.end();
  };
  if (has_option(type)) return;
  std::vector<std::string> tasks;
  for (const PipelineType& one : pipelines.entries())
    if (has_option(one)) tasks.push_back(one.task);
  throw ConfigError("{} is for {}; the model in {} does {}", names(option), fmt::join(tasks, " and "),
                    folder.string(), type.task);
}

std::unique_ptr<Pipeline> load_pipeline(const std::filesystem::path& folder, const PipelineOptions& options,
                                        const ModelRegistry& models, const PipelineRegistry& pipelines) {
  const auto require = [&](const char* option) { require_option(folder, option, pipelines, options.names); };
  if (options.aggregation_strategy) require("aggregation_strategy");
  if (options.top_k) require("top_k");
  if (options.handle_impossible_answer) require("handle_impossible_answer");
  return pipeline_type(folder, pipelines).make(folder, options, models);
}

}  // namespace stretto
