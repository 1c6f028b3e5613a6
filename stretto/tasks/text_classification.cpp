#include "stretto/tasks/text_classification.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/strings.h"
#include "stretto/config/data_names.h"
#include "stretto/config/tasks/text_classification.h"
#include "stretto/data/reader.h"
#include "stretto/data/reader_columns.h"
#include "stretto/data/stratified_split.h"
#include "stretto/data/summary.h"
#include "stretto/data/text_dataset.h"
#include "stretto/metrics/glue.h"
#include "stretto/model_config/config_json.h"
#include "stretto/tasks/fine_tuning.h"
#include "stretto/tasks/preparation.h"
#include "stretto/tasks/sequence_classification.h"
#include "stretto/trainer/folder/run_folder.h"
#include "stretto/trainer/run/monitor.h"

namespace stretto::tasks {

namespace {

using data::Table;
using data::TextDataset;

std::vector<std::string> spelled_labels(std::vector<std::string> names) {
  for (std::string& name : names) name = metrics::spelled_label(name);
  return names;
}

// Throws ConfigError unless a model that is trained further, or tested, was trained for this kind of labels.
void require_problem(const Recipe& recipe, const std::filesystem::path& folder, size_t labels,
                     ProblemType problem) {
  const std::string file = (folder / "config.json").string();
  const ProblemType trained = read_problem_type(read_config_json(folder / "config.json"), labels, file);
  if (trained == problem) return;
  throw ConfigError("{}: the model was trained for {}, but {} is {}; set it to {}", file, name_of(trained),
                    recipe.origins.mention("text_classification.problem_type"), name_of(problem),
                    name_of(trained));
}

std::vector<std::string> possible_metrics(const Recipe& recipe) {
  const auto& config = recipe.task_settings.as<TextClassificationConfig>();
  return ClassificationResults::possible_metrics(config.problem(), config.glue_task);
}

class TextClassification : public FineTuning<Table, TextDataset, SequenceClassification> {
 public:
  explicit TextClassification(const TaskContext& context)
      : FineTuning(context, {.head = "classification",
                             .unlabelled = "has no labels",
                             .predictions = "predictions.jsonl",
                             .metrics = possible_metrics(context.recipe)}),
        config_(recipe_.task_settings.as<TextClassificationConfig>()),
        problem_(config_.problem()) {}

 private:
  TrainingFiles read_for_training() override;
  Table read_for_test(const std::vector<std::string>& labels) override;
  bool has_labels(const Table& table) const override { return table.has_labels; }
  std::string content_hash(const Table& table) const override { return data::content_hash(table); }
  std::unique_ptr<SequenceClassification> make_module(const ModuleArguments& arguments) override {
    const auto& labels = arguments.labels;
    return std::make_unique<SequenceClassification>(
        arguments.model, labels, arguments.seed, models_,
        settings(arguments.is_trained ? spelled_labels(labels) : labels), arguments.ranks);
  }
  void prepare(SequenceClassification& module, const std::filesystem::path&, const Table* train) override {
    if (train != nullptr) module.record_pairs(train->has_pairs);
  }
  std::unique_ptr<TextDataset> tokenize(const Table& table, const TextModel& model,
                                        const text::Tokenizer& tokenizer, bool is_scored) const override;
  void describe(const Table& table, const TextDataset& dataset) const override;
  TestResults write_results(const Table& table, const SequenceClassification& module,
                            const Predictions& predictions, const Metrics& metrics) const override;

  // Reads the file of a setting.
  Table read(const char* setting, const std::filesystem::path& file, const data::LabelSet* labels,
             bool require_labels) const;
  ClassificationSettings settings(const std::vector<std::string>& labels) const;
  void require_monitored_metric(const std::vector<std::string>& labels, const Table& validation) const;
  void write_predictions(const Table& table, const ClassificationResults& results) const;
  std::string describe_most_wrong(const Table& table, const ClassificationResults& results) const;

  const TextClassificationConfig& config_;
  const ProblemType problem_;
};

// The recipe's settings for these labels of the files.
ClassificationSettings TextClassification::settings(const std::vector<std::string>& labels) const {
  if (config_.glue_task && problem_ == ProblemType::single_label_classification) {
    const auto wanted = metrics::glue_task(*config_.glue_task).labels.size();
    if (labels.size() != wanted)
      throw ConfigError("{}: {} has {} labels, but there are {}: {}",
                        recipe_.origins.label("text_classification.glue_task"), *config_.glue_task, wanted,
                        labels.size(), fmt::join(labels, ", "));
  }
  return {.problem = problem_,
          .class_weights = label_weights(recipe_, "text_classification.class_weights", config_.class_weights,
                                         "label", labels),
          .label_smoothing = config_.label_smoothing,
          .glue_task = config_.glue_task};
}

Table TextClassification::read(const char* setting, const std::filesystem::path& file,
                               const data::LabelSet* labels, bool require_labels) const {
  data::ReadOptions options;
  options.columns = {recipe_.data.text.value_or(""), recipe_.data.text_pair.value_or(""),
                     recipe_.data.label.value_or("")};
  options.labels = labels;
  options.problem = problem_;
  options.label_separator = config_.label_separator.value_or(",");
  options.require_labels = require_labels;
  options.encoding = corpus::parse_encoding(recipe_.data.encoding.value_or("utf-8"), data_names);
  options.names = data_names;
  return with_label(recipe_.origins.label(setting), [&] { return data::read_rows(file, options); });
}

std::unique_ptr<TextDataset> TextClassification::tokenize(const Table& table, const TextModel&,
                                                          const text::Tokenizer& tokenizer,
                                                          bool /*is_scored*/) const {
  return std::make_unique<TextDataset>(table, tokenizer, recipe_.data.max_length,
                                       recipe_.data.cache.value_or(recipe_.output / "cache"),
                                       recipe_.data.pad_to_multiple_of, data_names);
}

void TextClassification::describe(const Table& table, const TextDataset& dataset) const {
  log::info("data       {}: {}", table.name, data::describe_table(table));
  log::info("lengths    {}",
            data::describe_lengths(data::lengths_of(dataset), recipe_.data.max_length, data_names));
}

// Throws ConfigError if a decision depends on auroc, which the labels of the validation texts leave
// undefined.
void TextClassification::require_monitored_metric(const std::vector<std::string>& labels,
                                                  const Table& validation) const {
  if (problem_ == ProblemType::regression || config_.glue_task) return;
  const auto uses = data::label_uses(validation);
  const auto texts = std::ssize(validation.rows);
  for (const auto& [key, monitor] : trainer::monitored_settings(recipe_)) {
    if (monitor.metric() != "auroc") continue;
    for (const std::string& label : labels) {
      const auto use = uses.find(label);
      const int64_t count = use == uses.end() ? 0 : use->second.count;
      if (count > 0 && count < texts) continue;
      throw ConfigError(
          "{}: auroc is not defined on {}: {} of its {} texts have the label {}; validate on texts with and without it, or monitor average_precision",
          recipe_.origins.label(key), validation.name, count, texts, label);
    }
  }
}

TextClassification::TrainingFiles TextClassification::read_for_training() {
  std::optional<data::LabelSet> expected;
  if (recipe_.model.path) {
    if (const auto labels = trained_labels(models_, head(), *recipe_.model.path)) {
      require_problem(recipe_, *recipe_.model.path, labels->size(), problem_);
      if (problem_ != ProblemType::regression) expected.emplace(*labels);
    }
  }
  TrainingFiles files{.train =
                          read("data.train", *recipe_.data.train, expected ? &*expected : nullptr, true)};
  data::check_training_labels(files.train);
  warn_of_similar_labels(mesh_, files.train.name, data::label_uses(files.train));
  keep_first(files.train.rows, recipe_.data.max_train_samples);
  if (recipe_.data.validation) {
    files.validation = read("data.validation", *recipe_.data.validation, &files.train.labels, true);
    keep_first(files.validation->rows, recipe_.data.max_validation_samples);
  }
  if (recipe_.data.validation_split) {
    files.validation = data::take_validation(files.train, *recipe_.data.validation_split,
                                             static_cast<uint64_t>(recipe_.training.seed));
  }
  if (files.validation) require_monitored_metric(files.train.labels.names(), *files.validation);
  files.labels =
      problem_ == ProblemType::regression ? std::vector<std::string>{"0"} : files.train.labels.names();
  return files;
}

Table TextClassification::read_for_test(const std::vector<std::string>& names) {
  require_problem(recipe_, trainer::RunFolder(recipe_.output).model(), names.size(), problem_);
  const data::LabelSet labels(names);
  Table table = read("data.test", *recipe_.data.test, &labels, false);
  keep_first(table.rows, recipe_.data.max_test_samples);
  return table;
}

TestResults TextClassification::write_results(const Table& table, const SequenceClassification& module,
                                              const Predictions& predictions, const Metrics& metrics) const {
  const ClassificationResults results = module.results(predictions);
  write_predictions(table, results);
  if (metrics.empty()) return {};
  nlohmann::ordered_json record = metrics;
  record.update(results.report());
  return {std::move(record), {results.tables(), describe_most_wrong(table, results)}};
}

void TextClassification::write_predictions(const Table& table, const ClassificationResults& results) const {
  const auto record = [&](int64_t sample) {
    const data::TextRow& row = table.rows[static_cast<size_t>(sample)];
    nlohmann::ordered_json json = {{"line", row.line}};
    json.update(results.prediction(sample));
    json["text"] = row.text;
    if (table.has_pairs) json["text_pair"] = row.text_pair;
    return json.dump() + "\n";
  };
  const trainer::RunFolder folder(recipe_.output);
  std::string lines, wrong;
  for (int64_t i = 0; i < std::ssize(table.rows); ++i) lines += record(i);
  folder.write_text("predictions.jsonl", lines);
  if (!results.has_labels()) return std::filesystem::remove(folder.path() / "most_wrong.jsonl"), void();
  for (const int64_t sample : results.most_wrong()) wrong += record(sample);
  folder.write_text("most_wrong.jsonl", wrong);
}

// The first lines of most_wrong.jsonl, for the terminal.
std::string TextClassification::describe_most_wrong(const Table& table,
                                                    const ClassificationResults& results) const {
  constexpr size_t most = 5;
  const auto samples = results.most_wrong();
  if (samples.empty()) return "";
  const auto predicted = [](const nlohmann::ordered_json& record) {
    if (record.contains("prediction")) return fmt::format("{:.4g}", record["prediction"].get<double>());
    if (record.contains("labels")) return record["labels"].dump();
    return fmt::format("{} ({:.4f})", record["label"].get<std::string>(), record["score"].get<double>());
  };
  std::string text;
  for (size_t i = 0; i < std::min(most, samples.size()); ++i) {
    const data::TextRow& row = table.rows[static_cast<size_t>(samples[i])];
    const auto record = results.prediction(samples[i]);
    const nlohmann::ordered_json& gold = record["gold"];
    text += fmt::format("\n  line {}: gold {}, predicted {}\n    {}", row.line,
                        gold.is_string() ? gold.get<std::string>() : gold.dump(), predicted(record),
                        data::list_names({row.text}));
    if (table.has_pairs) text += "\n    " + data::list_names({row.text_pair});
  }
  return fmt::format("most wrong {}{}", (recipe_.output / "most_wrong.jsonl").string(), text);
}

}  // namespace

std::unique_ptr<Task> make_text_classification(const TaskContext& context) {
  return std::make_unique<TextClassification>(context);
}

}  // namespace stretto::tasks
