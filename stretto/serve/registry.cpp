#include "stretto/models/config_json.h"
#include "stretto/serve/entity_finder.h"
#include "stretto/serve/pipeline.h"
#include "stretto/serve/question_answerer.h"
#include "stretto/serve/text_classifier.h"

namespace stretto {

const PipelineRegistry& bundled_pipelines() {
  static const PipelineRegistry pipelines("a model head",
                                          {
                                              {"SequenceClassification", make_text_classifier},
                                              {"TokenClassification", make_entity_finder},
                                              {"QuestionAnswering", make_question_answerer},
                                          });
  return pipelines;
}

std::unique_ptr<Pipeline> load_pipeline(const std::filesystem::path& folder, const PipelineOptions& options,
                                        const ModelRegistry& models, const PipelineRegistry& pipelines) {
  const std::filesystem::path file = folder / "config.json";
  const std::string architecture = architecture_of(read_config_json(file));
  const size_t head = architecture.rfind("For");
  if (head == std::string::npos) {
    throw ConfigError(
        "{}: architectures: \"{}\" is a model without a head; expected a fine-tuned one (...For{}), such as RUN/model written by `stretto train`",
        file.string(), architecture, fmt::join(pipelines.names(), ", ...For"));
  }
  return pipelines.at(architecture.substr(head + 3), file.string() + ": architectures")
      .make(folder, options, models);
}

}  // namespace stretto
