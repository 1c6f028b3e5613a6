#include "stretto/models/registry.h"

#include <algorithm>
#include <iterator>

#include "stretto/base/error.h"
#include "stretto/model_config/config_json.h"
#include "stretto/model_config/heads.h"
#include "stretto/models/bart/model.h"
#include "stretto/models/bert/model.h"
#include "stretto/models/blocks.h"
#include "stretto/models/distilbert/model.h"
#include "stretto/models/gpt2/model.h"
#include "stretto/models/llama/model.h"
#include "stretto/models/sequence_tagger/model.h"
#include "stretto/tensor/hf_folder.h"

namespace stretto {
namespace {

ModelType bert_type(const BertVariant& variant) {
  const HeadType sequence_classifier =
      variant.has_pooler
          ? HeadType{make_bert_sequence_classifier, "classifier.weight", true, true}
          : HeadType{make_layered_bert_sequence_classifier, "classifier.out_proj.weight", true, true};
  return {
      .name = variant.model_type,
      .heads = {{heads::sequence_classification, sequence_classifier},
                {heads::token_classification, {make_bert_token_classifier, "classifier.weight", true, true}},
                {heads::question_answering, {make_bert_question_answerer, "qa_outputs.weight", true, true}},
                {heads::hidden_states, {make_bert_hidden_states, "", true, true}}}};
}

ModelType distilbert_type() {
  const auto with = [](const std::string& head) -> MakeTextModel {
    return [head](const nlohmann::json& config, const std::string& source, const TextModelOptions& options) {
      return make_distilbert(head, config, source, options);
    };
  };
  ModelType type{.name = "distilbert", .heads = {}};
  for (const char* head : {heads::sequence_classification, heads::token_classification})
    type.heads[head] = {with(head), "classifier.weight", true, true};
  type.heads[heads::question_answering] = {with(heads::question_answering), "qa_outputs.weight", true, true};
  type.heads[heads::hidden_states] = {with(heads::hidden_states), "", true, true};
  return type;
}

ModelType bart_type() {
  return {.name = "bart",
          .heads = {{heads::sequence_classification,
                     {make_bart_sequence_classifier, "classification_head.out_proj.weight", true, true}}}};
}

ModelType gpt2_type() {
  return {
      .name = "gpt2",
      .heads = {{heads::causal_language_model, {.make = make_gpt2, .divides = true, .divides_rows = true}}}};
}

ModelType llama_type(const LlamaVariant& variant) {
  return {
      .name = variant.model_type,
      .heads = {{heads::causal_language_model, {.make = make_llama, .divides = true, .divides_rows = true}}}};
}

ModelType sequence_tagger_type() {
  return {.name = SequenceTaggerConfig::model_type,
          .heads = {{heads::token_classification, {make_sequence_tagger, "linear.weight", true, true}}}};
}

std::vector<ModelType> bundled_types() {
  std::vector<ModelType> types;
  std::ranges::transform(bert_variants(), std::back_inserter(types), bert_type);
  types.push_back(distilbert_type());
  types.push_back(bart_type());
  types.push_back(gpt2_type());
  std::ranges::transform(llama_variants(), std::back_inserter(types), llama_type);
  types.push_back(sequence_tagger_type());
  return types;
}

// The heads that compute logits.
std::vector<std::string> heads_of(const ModelType& type) {
  std::vector<std::string> names;
  for (const auto& [head, _] : type.heads)
    if (head != heads::hidden_states) names.push_back(head);
  return names;
}

// The names of the types with a head that has the capability.
std::string types_that(const ModelRegistry& models, bool HeadType::*capability) {
  std::vector<std::string> names;
  for (const ModelType& type : models.entries())
    if (std::ranges::any_of(type.heads, [&](const auto& item) { return item.second.*capability; }))
      names.push_back(type.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

void require_divisible(const ModelRegistry& models, const ModelType& type, const std::string& head,
                       const std::string& source, const nn::TensorParallel& ranks) {
  if (!type.heads.at(head).divides) {
    throw ConfigError(
        "{}: model_type: the layers of \"{}\" with this head cannot be divided among ranks (tp); those of {} can",
        source, type.name, types_that(models, &HeadType::divides));
  }
  if (ranks.sequence && !type.heads.at(head).divides_rows) {
    throw ConfigError(
        "{}: model_type: the rows between the layers of \"{}\" cannot be divided among ranks (sequence parallelism); those of {} can",
        source, type.name, types_that(models, &HeadType::divides_rows));
  }
}

}  // namespace

const ModelRegistry& bundled_models() {
  static const ModelRegistry models("a model_type", bundled_types());
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

std::shared_ptr<TextModel> make_text_model(const ModelRegistry& models, const std::string& head,
                                           const nlohmann::json& config, const std::string& source,
                                           const TextModelOptions& options) {
  const ModelType& type = model_type_of(models, config, source);
  const auto found = type.heads.find(head);
  if (found != type.heads.end()) {
    if (options.tensor_parallel.divides())
      require_divisible(models, type, head, source, options.tensor_parallel);
    try {
      return found->second.make(config, source, options);
    } catch (const UnevenHeads& error) {
      throw ConfigError("{}: {}", source, error.what());
    }
  }
  if (head == heads::hidden_states)
    throw ConfigError("{}: model_type: the states of \"{}\" cannot be read by another model", source,
                      type.name);
  throw ConfigError("{}: model_type: \"{}\" has no head for {}; its heads: {}", source, type.name, head,
                    fmt::join(heads_of(type), ", "));
}

std::optional<std::vector<std::string>> trained_labels(const ModelRegistry& models, const std::string& head,
                                                       const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "config.json";
  const nlohmann::json config = read_config_json(file);
  const ModelType& type = model_type_of(models, config, file.string());
  if (names_another_head(config, head)) return std::nullopt;
  const auto found = type.heads.find(head);
  if (found == type.heads.end()) return std::nullopt;
  const std::string& weight = found->second.trained_weight;
  if (!weight.empty() && !hf_folder_has(folder, weight)) return std::nullopt;
  return read_labels(config, file.string());
}

}  // namespace stretto
