#include "stretto/tasks/text_classification.h"

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/strings.h"
#include "stretto/data/reader.h"
#include "stretto/data/stratified_split.h"
#include "stretto/data/summary.h"
#include "stretto/tasks/preparation.h"
#include "stretto/trainer/run_folder.h"
#include "stretto/trainer/summary.h"

namespace stretto {

std::unique_ptr<Task> make_text_classification(const TaskContext& context) {
  return std::make_unique<TextClassification>(context);
}

data::Table TextClassification::read(const std::filesystem::path& file, const data::LabelSet* labels,
                                     bool require_labels) const {
  data::ReadOptions options;
  options.columns = {recipe_.data.text.value_or(""), recipe_.data.text_pair.value_or(""),
                     recipe_.data.label.value_or("")};
  options.labels = labels;
  options.require_labels = require_labels;
  options.encoding = corpus::parse_encoding(recipe_.data.encoding.value_or("utf-8"));
  return data::read_rows(file, options);
}

// Rank 0 tokenises and writes the cache; the other ranks map it.
std::unique_ptr<data::TextDataset> TextClassification::tokenize(const data::Table& table,
                                                                const text::Tokenizer& tokenizer) const {
  const auto make = [&] {
    return std::make_unique<data::TextDataset>(table, tokenizer, recipe_.data.max_length,
                                               recipe_.data.cache.value_or(recipe_.output / "cache"),
                                               recipe_.data.pad_to_multiple_of);
  };
  auto dataset = on_rank_0_first(group_, make);
  if (group_.rank() != 0) return dataset;
  log::info("data       {}: {}", table.name, data::describe_table(table));
  log::info("lengths    {}", data::describe_lengths(dataset->lengths(), recipe_.data.max_length));
  return dataset;
}

FitResult TextClassification::train(const std::vector<std::shared_ptr<Callback>>& callbacks) {
  const text::Tokenizer tokenizer = load_tokenizer(recipe_, *recipe_.tokenizer.path);
  std::optional<data::LabelSet> expected;
  if (recipe_.model.path) {
    if (const auto labels = trained_labels(models_, Head::sequence_classification, *recipe_.model.path))
      expected.emplace(*labels);
  }
  data::Table train_table = read(*recipe_.data.train, expected ? &*expected : nullptr, true);
  data::check_training_labels(train_table);
  std::optional<data::Table> validation_table;
  if (recipe_.data.validation) validation_table = read(*recipe_.data.validation, &train_table.labels, true);
  if (recipe_.data.validation_split) {
    validation_table = data::take_validation(train_table, *recipe_.data.validation_split,
                                             static_cast<uint64_t>(recipe_.training.seed));
  }

  SequenceClassification module(recipe_.model, train_table.labels.names(),
                                static_cast<uint64_t>(recipe_.training.seed), models_);
  compare_inputs(
      tokenizer, module.net(),
      {{"data.train", &train_table}, {"data.validation", validation_table ? &*validation_table : nullptr}});
  check_fit(recipe_, tokenizer, module.net());
  module.ship_tokenizer(*recipe_.tokenizer.path, tokenizer.lowercase());
  module.record_pairs(train_table.has_pairs);
  const auto train_set = tokenize(train_table, tokenizer);
  const auto validation_set = validation_table ? tokenize(*validation_table, tokenizer) : nullptr;
  train_table = {};  // frees the texts, which are no longer needed
  validation_table.reset();
  Trainer trainer(recipe_, group_, device_);
  for (const auto& callback : callbacks) trainer.add(callback);
  return trainer.fit(module, *train_set, validation_set.get());
}

void TextClassification::test() {
  const RunFolder folder(recipe_.output);
  ModelConfig trained;
  trained.path = folder.model();
  const text::Tokenizer tokenizer = load_tokenizer(recipe_, folder.model());
  const auto names = trained_labels(models_, Head::sequence_classification, folder.model());
  if (!names) throw DataError("{}: the model has no classification head", folder.model().string());
  const data::LabelSet labels(*names);
  const data::Table table = read(*recipe_.data.test, &labels, false);
  SequenceClassification module(trained, *names, 0, models_);
  compare_inputs(tokenizer, module.net(), {{"data.test", &table}});
  check_fit(recipe_, tokenizer, module.net());
  const auto dataset = tokenize(table, tokenizer);
  const Evaluation evaluation = evaluate_for_test(recipe_, module, *dataset, group_, device_);
  if (group_.rank() != 0) return;
  write_predictions(table, module.net().labels(), evaluation.rows);
  const Metrics metrics = module.metrics(evaluation.rows);
  if (metrics.empty()) {
    log::info("{} has no labels: predictions only", table.name);
    std::filesystem::remove(folder.path() / "test_results.json");  // from other data
  } else {
    folder.write_json("test_results.json", nlohmann::ordered_json(metrics));
    log::info("test       {}", metrics_text(metrics));
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
  require_same_inputs(group_, inputs);
}

void TextClassification::write_predictions(const data::Table& table, const std::vector<std::string>& labels,
                                           const Tensor& rows) const {
  const Tensor scores = at::softmax(rows.slice(1, 0, std::ssize(labels)), 1).contiguous();
  const Tensor best = scores.argmax(1);
  std::string lines;
  for (int64_t i = 0; i < std::ssize(table.rows); ++i) {
    const data::TextRow& row = table.rows[static_cast<size_t>(i)];
    const auto label = best[i].item<int64_t>();
    nlohmann::ordered_json record = {{"line", row.line}, {"label", labels.at(static_cast<size_t>(label))}};
    record["score"] = scores[i][label].item<double>();
    if (row.label >= 0) record["gold"] = labels.at(static_cast<size_t>(row.label));
    lines += record.dump() + "\n";
  }
  RunFolder(recipe_.output).write_text("predictions.jsonl", lines);
}

}  // namespace stretto
