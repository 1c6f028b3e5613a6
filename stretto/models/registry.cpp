#include "stretto/models/registry.h"

#include "stretto/base/error.h"
#include "stretto/model_config/config_json.h"
#include "stretto/models/bart/model.h"
#include "stretto/models/bert/model.h"
#include "stretto/models/distilbert/model.h"
#include "stretto/models/sequence_tagger/model.h"

namespace stretto {
namespace {

ModelType roberta_type(const char* name) {
  return {.name = name,
          .sequence_classifier = make_roberta_sequence_classifier,
          .token_classifier = make_bert_token_classifier,
          .question_answerer = make_bert_question_answerer,
          .hidden_states = make_bert_hidden_states,
          .sequence_classifier_head = "classifier.out_proj.weight"};
}

MakeTextModel distilbert_with(Head head) {
  return [head](const nlohmann::json& config, const std::string& source, const TextModelOptions& options) {
    return make_distilbert(head, config, source, options);
  };
}

}  // namespace

const ModelRegistry& bundled_models() {
  static const ModelRegistry models(
      "a model_type", {
                          {.name = "bert",
                           .sequence_classifier = make_bert_sequence_classifier,
                           .token_classifier = make_bert_token_classifier,
                           .question_answerer = make_bert_question_answerer,
                           .hidden_states = make_bert_hidden_states},
                          roberta_type("roberta"),
                          roberta_type("xlm-roberta"),
                          roberta_type("electra"),
                          {.name = "distilbert",
                           .sequence_classifier = distilbert_with(Head::sequence_classification),
                           .token_classifier = distilbert_with(Head::token_classification),
                           .question_answerer = distilbert_with(Head::question_answering),
                           .hidden_states = distilbert_with(Head::hidden_states)},
                          {.name = "bart",
                           .sequence_classifier = make_bart_sequence_classifier,
                           .sequence_classifier_head = "classification_head.out_proj.weight"},
                          {.name = SequenceTaggerConfig::model_type,
                           .token_classifier = make_sequence_tagger,
                           .token_classifier_head = "linear.weight"},
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

std::shared_ptr<TextModel> make_text_model(const ModelRegistry& models, Head head,
                                           const nlohmann::json& config, const std::string& source,
                                           const TextModelOptions& options) {
  const ModelType& type = model_type_of(models, config, source);
  const MakeTextModel& make = head == Head::sequence_classification ? type.sequence_classifier
                              : head == Head::token_classification  ? type.token_classifier
                              : head == Head::question_answering    ? type.question_answerer
                                                                    : type.hidden_states;
  if (!make && head == Head::hidden_states)
    throw ConfigError("{}: model_type: the states of \"{}\" cannot be read by another model", source,
                      type.name);
  if (!make) {
    throw ConfigError("{}: model_type: \"{}\" has no head for {}", source, type.name,
                      head == Head::sequence_classification ? "sequence classification"
                      : head == Head::token_classification  ? "token classification"
                                                            : "question answering");
  }
  return make(config, source, options);
}

std::optional<std::vector<std::string>> trained_labels(const ModelRegistry& models, Head head,
                                                       const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "config.json";
  const nlohmann::json config = read_config_json(file);
  const ModelType& type = model_type_of(models, config, file.string());
  const std::string architecture = architecture_of(config);
  if (architecture.find("For") != std::string::npos &&
      !architecture.ends_with(std::string("For") + name_of(head)))
    return std::nullopt;
  const std::string& weight = head == Head::sequence_classification ? type.sequence_classifier_head
                              : head == Head::token_classification  ? type.token_classifier_head
                                                                    : type.question_answerer_head;
  if (!hf_folder_has(folder, weight)) return std::nullopt;
  return read_labels(config, file.string());
}

const char* name_of(Head head) {
  switch (head) {
    case Head::sequence_classification:
      return "SequenceClassification";
    case Head::token_classification:
      return "TokenClassification";
    case Head::question_answering:
      return "QuestionAnswering";
    case Head::hidden_states:
      break;
  }
  return "";
}

}  // namespace stretto
