#include "stretto/tasks/text_classification.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/strings.h"
#include "stretto/config/data_names.h"
#include "stretto/data/reader.h"
#include "stretto/data/reader_columns.h"
#include "stretto/data/stratified_split.h"
#include "stretto/data/summary.h"
#include "stretto/data/text_dataset.h"
#include "stretto/metrics/glue.h"
#include "stretto/model_config/config_json.h"
#include "stretto/model_config/heads.h"
#include "stretto/tasks/preparation.h"
#include "stretto/tasks/sequence_classification.h"
#include "stretto/trainer/folder/run_folder.h"
#include "stretto/trainer/records/summary.h"

namespace stretto {

std::unique_ptr<Task> make_text_classification(const TaskContext& context) {
  return std::make_unique<TextClassification>(context);
}

namespace {

data::LabelKind label_kind(ProblemType problem) {
  switch (problem) {
    case ProblemType::regression:
      return data::LabelKind::number;
    case ProblemType::multi_label_classification:
      return data::LabelKind::classes;
    case ProblemType::single_label_classification:
      break;
  }
  return data::LabelKind::one_class;
}

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

}  // namespace

TextClassification::TextClassification(const TaskContext& context)
    : recipe_(context.recipe),
      mesh_(context.mesh),
      device_(context.device),
      models_(context.models),
      problem_(
          parse_problem_type(recipe_.text_classification.problem(), "text_classification.problem_type")) {}

// What the recipe says, for these labels of the files.
ClassificationSettings TextClassification::settings(const std::vector<std::string>& labels) const {
  const TextClassificationConfig& config = recipe_.text_classification;
  if (config.glue_task && problem_ == ProblemType::single_label_classification) {
    const auto wanted = metrics::glue_task(*config.glue_task).labels.size();
    if (labels.size() != wanted)
      throw ConfigError("{}: {} has {} labels, but there are {}: {}",
                        recipe_.origins.label("text_classification.glue_task"), *config.glue_task, wanted,
                        labels.size(), fmt::join(labels, ", "));
  }
  return {.problem = problem_,
          .class_weights = label_weights(recipe_, "text_classification.class_weights", config.class_weights,
                                         "label", labels),
          .label_smoothing = config.label_smoothing,
          .glue_task = config.glue_task};
}

data::Table TextClassification::read(const std::filesystem::path& file, const data::LabelSet* labels,
                                     bool require_labels) const {
  data::ReadOptions options;
  options.columns = {recipe_.data.text.value_or(""), recipe_.data.text_pair.value_or(""),
                     recipe_.data.label.value_or("")};
  options.labels = labels;
  options.label_kind = label_kind(problem_);
  options.label_separator = recipe_.text_classification.label_separator.value_or(",");
  options.require_labels = require_labels;
  options.encoding = corpus::parse_encoding(recipe_.data.encoding.value_or("utf-8"), data_names);
  options.names = data_names;
  return data::read_rows(file, options);
}

// Rank 0 tokenises and writes the cache; the other ranks map it.
std::unique_ptr<data::TextDataset> TextClassification::tokenize(const data::Table& table,
                                                                const text::Tokenizer& tokenizer) const {
  const auto make = [&] {
    return std::make_unique<data::TextDataset>(table, tokenizer, recipe_.data.max_length,
                                               recipe_.data.cache.value_or(recipe_.output / "cache"),
                                               recipe_.data.pad_to_multiple_of, data_names);
  };
  auto dataset = on_rank_0_first(mesh_, make);
  if (mesh_.world().rank() != 0) return dataset;
  log::info("data       {}: {}", table.name, data::describe_table(table));
  log::info("lengths    {}",
            data::describe_lengths(data::lengths_of(*dataset), recipe_.data.max_length, data_names));
  return dataset;
}

FitResult TextClassification::train(const std::vector<std::shared_ptr<Callback>>& callbacks) {
  const text::Tokenizer tokenizer = load_tokenizer(recipe_, *recipe_.tokenizer.path);
  std::optional<data::LabelSet> expected;
  if (recipe_.model.path) {
    if (const auto labels = trained_labels(models_, heads::sequence_classification, *recipe_.model.path)) {
      require_problem(recipe_, *recipe_.model.path, labels->size(), problem_);
      if (problem_ != ProblemType::regression) expected.emplace(*labels);
    }
  }
  data::Table train_table = read(*recipe_.data.train, expected ? &*expected : nullptr, true);
  data::check_training_labels(train_table);
  warn_of_similar_labels(mesh_, train_table.name, data::label_uses(train_table));
  keep_first(train_table.rows, recipe_.data.max_train_samples);
  std::optional<data::Table> validation_table;
  if (recipe_.data.validation) {
    validation_table = read(*recipe_.data.validation, &train_table.labels, true);
    keep_first(validation_table->rows, recipe_.data.max_validation_samples);
  }
  if (recipe_.data.validation_split) {
    validation_table = data::take_validation(train_table, *recipe_.data.validation_split,
                                             static_cast<uint64_t>(recipe_.training.seed));
  }

  const std::vector<std::string> labels =
      problem_ == ProblemType::regression ? std::vector<std::string>{"0"} : train_table.labels.names();
  SequenceClassification module(recipe_.model, labels, static_cast<uint64_t>(recipe_.training.seed), models_,
                                settings(labels));
  compare_inputs(
      tokenizer, module.net(),
      {{"data.train", &train_table}, {"data.validation", validation_table ? &*validation_table : nullptr}});
  check_fit(recipe_, tokenizer, module.net());
  module.ship_tokenizer(*recipe_.tokenizer.path, tokenizer.lowercase(), prefix_space(recipe_));
  module.record_pairs(train_table.has_pairs);
  const auto train_set = tokenize(train_table, tokenizer);
  const auto validation_set = validation_table ? tokenize(*validation_table, tokenizer) : nullptr;
  train_table = {};  // frees the texts, which are no longer needed
  validation_table.reset();
  return fit_module(recipe_, module, *train_set, validation_set.get(), mesh_, device_, callbacks);
}

void TextClassification::test() {
  const RunFolder folder(recipe_.output);
  ModelConfig trained;
  trained.path = folder.model();
  const text::Tokenizer tokenizer = load_tokenizer(recipe_, folder.model());
  const auto names = trained_labels(models_, heads::sequence_classification, folder.model());
  if (!names) throw DataError("{}: the model has no classification head", folder.model().string());
  require_problem(recipe_, folder.model(), names->size(), problem_);
  const data::LabelSet labels(*names);
  data::Table table = read(*recipe_.data.test, &labels, false);
  keep_first(table.rows, recipe_.data.max_test_samples);
  SequenceClassification module(trained, *names, 0, models_, settings(spelled_labels(*names)));
  compare_inputs(tokenizer, module.net(), {{"data.test", &table}});
  check_fit(recipe_, tokenizer, module.net());
  const auto dataset = tokenize(table, tokenizer);
  const Evaluation evaluation = evaluate_for_test(recipe_, module, *dataset, mesh_, device_);
  if (mesh_.world().rank() != 0) return;
  const ClassificationResults results = module.results(evaluation.rows);
  const Metrics metrics = results.metrics();
  require_finite_loss(recipe_, metrics);
  write_predictions(table, results);
  if (metrics.empty()) {
    log::info("{} has no labels: predictions only", table.name);
    std::filesystem::remove(folder.path() / "test_results.json");  // from other data
  } else {
    nlohmann::ordered_json record = metrics;
    record.update(results.report());
    folder.write_json("test_results.json", record);
    log::info("test       {}", metrics_text(metrics));
    if (const std::string tables = results.tables(); !tables.empty()) log::info("{}", tables);
    show_most_wrong(table, results);
  }
  log::info("predictions {}", (folder.path() / "predictions.jsonl").string());
}

// Compares over ranks what each has read from its files.
void TextClassification::compare_inputs(
    const text::Tokenizer& tokenizer, const TextModel& model,
    std::initializer_list<std::pair<const char*, const data::Table*>> tables) const {
  std::vector<Input> inputs = inputs_of(tokenizer, model);
  for (const auto& [name, table] : tables) {
    if (table != nullptr) inputs.push_back({name, "contents " + data::content_hash(*table), table->name});
  }
  require_same_inputs(mesh_.world(), inputs);
}

void TextClassification::write_predictions(const data::Table& table,
                                           const ClassificationResults& results) const {
  const auto record = [&](int64_t sample) {
    const data::TextRow& row = table.rows[static_cast<size_t>(sample)];
    nlohmann::ordered_json json = {{"line", row.line}};
    json.update(results.prediction(sample));
    json["text"] = row.text;
    if (table.has_pairs) json["text_pair"] = row.text_pair;
    return json.dump() + "\n";
  };
  const RunFolder folder(recipe_.output);
  std::string lines, wrong;
  for (int64_t i = 0; i < std::ssize(table.rows); ++i) lines += record(i);
  folder.write_text("predictions.jsonl", lines);
  if (!results.has_labels()) return std::filesystem::remove(folder.path() / "most_wrong.jsonl"), void();
  for (const int64_t sample : results.most_wrong()) wrong += record(sample);
  folder.write_text("most_wrong.jsonl", wrong);
}

// The first lines of most_wrong.jsonl, for the terminal.
void TextClassification::show_most_wrong(const data::Table& table,
                                         const ClassificationResults& results) const {
  constexpr size_t most = 5;
  const auto samples = results.most_wrong();
  if (samples.empty()) return;
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
  log::info("most wrong {}{}", (recipe_.output / "most_wrong.jsonl").string(), text);
}

}  // namespace stretto
