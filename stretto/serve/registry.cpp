#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/models/config_json.h"
#include "stretto/serve/entity_finder.h"
#include "stretto/serve/pipeline.h"
#include "stretto/serve/question_answerer.h"
#include "stretto/serve/text_classifier.h"

namespace stretto {
const PipelineRegistry& bundled_pipelines() {
  static const PipelineRegistry pipelines("a model head",
                                          {
                                              {"SequenceClassification",
                                               "text-classification",
                                               {"label", "scores", "logits", "pipeline"},
                                               {"--top-k"},
                                               make_text_classifier},
                                              {"TokenClassification",
                                               "token-classification",
                                               {"label", "scores", "logits", "pipeline"},
                                               {"--aggregation-strategy", "--split-into-words"},
                                               make_entity_finder},
                                              {"QuestionAnswering",
                                               "question-answering",
                                               {"label", "logits", "pipeline"},
                                               {"--top-k", "--handle-impossible-answer"},
                                               make_question_answerer},
                                          });
  return pipelines;
}

const PipelineType& pipeline_type(const std::filesystem::path& folder, const PipelineRegistry& pipelines) {
  const std::filesystem::path file = folder / "config.json";
  const std::string architecture = architecture_of(read_config_json(file));
  const size_t head = architecture.rfind("For");
  if (head == std::string::npos) {
    throw ConfigError(
        "{}: architectures: \"{}\" is a model without a head; expected a fine-tuned one (...For{}), such as RUN/model written by `stretto train`",
        file.string(), architecture, fmt::join(pipelines.names(), ", ...For"));
  }
  return pipelines.at(architecture.substr(head + 3), file.string() + ": architectures");
}

void require_option(const std::filesystem::path& folder, const std::string& option,
                    const PipelineRegistry& pipelines) {
  const PipelineType& type = pipeline_type(folder, pipelines);
  const auto has_option = [&](const PipelineType& one) {
    return std::ranges::find(one.options, option) != one.options.end();
  };
  if (has_option(type)) return;
  std::vector<std::string> tasks;
  for (const PipelineType& one : pipelines.entries())
    if (has_option(one)) tasks.push_back(one.task);
  throw ConfigError("{} is for {}; the model in {} does {}", option, fmt::join(tasks, " and "),
                    folder.string(), type.task);
}

std::unique_ptr<Pipeline> load_pipeline(const std::filesystem::path& folder, const PipelineOptions& options,
                                        const ModelRegistry& models, const PipelineRegistry& pipelines) {
  if (options.aggregation_strategy) require_option(folder, "--aggregation-strategy", pipelines);
  if (options.top_k) require_option(folder, "--top-k", pipelines);
  if (options.handle_impossible_answer) require_option(folder, "--handle-impossible-answer", pipelines);
  return pipeline_type(folder, pipelines).make(folder, options, models);
}

}  // namespace stretto
