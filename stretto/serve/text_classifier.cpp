#include "stretto/serve/text_classifier.h"

#include <algorithm>
#include <numeric>

#include "stretto/base/error.h"
#include "stretto/data/features/texts.h"
#include "stretto/data/packing.h"
#include "stretto/model_config/config_json.h"
#include "stretto/model_config/heads.h"
#include "stretto/model_config/problem_type.h"
#include "stretto/serve/served_model.h"

namespace stretto::serve {
namespace {

InputKind kind_of(std::optional<bool> pairs) {
  if (!pairs) return InputKind::text_or_pair;
  return *pairs ? InputKind::text_pair : InputKind::text;
}

}  // namespace

TextClassifier::TextClassifier(const std::filesystem::path& folder, const PipelineOptions& options,
                               const ModelRegistry& models)
    : served_(std::make_unique<const ServedModel>(folder, heads::sequence_classification, options, models)),
      kind_(kind_of(read_text_pairs(served_->config))),
      top_k_(options.top_k),
      problem_(read_problem_type(served_->config, served_->model->labels().size(),
                                 served_->folder + "/config.json")) {}

TextClassifier::~TextClassifier() = default;

const std::vector<std::string>& TextClassifier::labels() const { return served_->model->labels(); }

Tensor TextClassifier::logits(std::span<const PipelineInput> inputs) const {
  std::vector<text::Encoding> encodings;
  for (const PipelineInput& input : inputs) encodings.push_back(encode(input, true));
  return logits_of(encodings);
}

text::Encoding TextClassifier::encode(const PipelineInput& input, bool truncated) const {
  const std::optional<int64_t> most =
      truncated ? std::optional(served_->model->limits().max_length) : std::nullopt;
  return data::text_tokens(served_->tokenizer, input.text, input.text_pair, most);
}

bool TextClassifier::is_truncated(const PipelineInput& input, const text::Encoding& encoding) const {
  return static_cast<int64_t>(encoding.size()) == served_->model->limits().max_length &&
         encode(input, false).size() > encoding.size();
}

Tensor TextClassifier::logits_of(std::span<const text::Encoding> encodings) const {
  at::NoGradGuard no_grad;
  std::vector<data::TokenSequence> sequences;
  for (const text::Encoding& encoding : encodings)
    sequences.push_back({encoding.ids, encoding.type_ids, std::ssize(sequences)});
  return served_->logits(data::pack_sequences(sequences, served_->pad_to_multiple_of));
}

std::vector<nlohmann::ordered_json> TextClassifier::predict(std::span<const PipelineInput> inputs,
                                                            const std::string& output) const {
  if (output != "label" && output != "scores" && output != "logits" && output != "pipeline")
    throw ConfigError("output: \"{}\" is not one of label, scores, logits, pipeline", output);
  std::vector<text::Encoding> encodings;
  for (const PipelineInput& input : inputs) encodings.push_back(encode(input, true));
  const Tensor rows = logits_of(encodings);
  std::vector<nlohmann::ordered_json> records;
  for (size_t i = 0; i < inputs.size(); ++i) {
    records.push_back(record(inputs[i], rows[static_cast<int64_t>(i)], output));
    if (output != "pipeline" && is_truncated(inputs[i], encodings[i])) records.back()["truncated"] = true;
  }
  return records;
}

nlohmann::ordered_json TextClassifier::record(const PipelineInput& input, const Tensor& logits,
                                              const std::string& output) const {
  served_->require_finite(logits, input.text);
  const Tensor scores = problem_ == ProblemType::regression                   ? logits
                        : problem_ == ProblemType::multi_label_classification ? at::sigmoid(logits)
                                                                              : at::softmax(logits, 0);
  if (output == "pipeline") return best_classes(scores);
  nlohmann::ordered_json record = {{"text", input.text}};
  if (input.text_pair) record["text_pair"] = *input.text_pair;
  if (output == "logits") {
    record["logits"] =
        std::vector<double>(logits.data_ptr<double>(), logits.data_ptr<double>() + logits.numel());
  } else if (output == "scores") {
    for (size_t id = 0; id < labels().size(); ++id)
      record["scores"][labels()[id]] = scores[static_cast<int64_t>(id)].item<double>();
  } else {
    top_k_ ? void(record["classes"] = best_classes(scores)) : record.update(best_classes(scores));
    if (problem_ != ProblemType::multi_label_classification) return record;
    record["labels"] = nlohmann::ordered_json::array();
    for (size_t id = 0; id < labels().size(); ++id)
      if (logits[static_cast<int64_t>(id)].item<double>() >= 0) record["labels"].push_back(labels()[id]);
  }
  return record;
}

// Returns the best class, or with top_k a list of classes, best first.
nlohmann::ordered_json TextClassifier::best_classes(const Tensor& scores) const {
  std::vector<int64_t> ids(labels().size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto score = [&](int64_t id) { return scores[id].item<double>(); };
  std::ranges::stable_sort(ids, std::greater{}, score);
  ids.resize(static_cast<size_t>(std::min<int64_t>(top_k_.value_or(1), std::ssize(ids))));
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const int64_t id : ids)
    list.push_back({{"label", labels()[static_cast<size_t>(id)]}, {"score", score(id)}});
  return top_k_ ? list : list.front();
}

PipelineType text_classification_pipeline() {
  return {.name = heads::sequence_classification,
          .task = "text-classification",
          .outputs = {"label", "scores", "logits", "pipeline"},
          .options = {"top_k"},
          .make = make_pipeline<TextClassifier>};
}

}  // namespace stretto::serve
