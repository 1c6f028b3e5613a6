#include "stretto/tasks/text_classification.h"

#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/base/log.h"
#include "stretto/base/strings.h"
#include "stretto/data/reader.h"
#include "stretto/data/summary.h"
#include "stretto/trainer/evaluate.h"
#include "stretto/trainer/products.h"
#include "stretto/trainer/run_folder.h"
#include "stretto/trainer/same_inputs.h"
#include "stretto/trainer/summary.h"

namespace stretto {
namespace {

void check_fit(const Recipe& recipe, const text::Tokenizer& tokenizer, const SequenceClassifier& model) {
  if (tokenizer.vocab_size() > model.vocab_size()) {
    throw ConfigError(
        "the tokenizer has ids up to {}, but the model's vocab_size is {}; set tokenizer.path to the tokenizer of model.path",
        tokenizer.vocab_size() - 1, model.vocab_size());
  }
  if (recipe.data.max_length > model.max_length()) {
    throw ConfigError("data.max_length: {} exceeds the {} positions of the model; set data.max_length: {}",
                      recipe.data.max_length, model.max_length(), model.max_length());
  }
}

}  // namespace

std::unique_ptr<Task> make_text_classification(const TaskContext& context) {
  return std::make_unique<TextClassification>(context);
}

text::Tokenizer TextClassification::load_tokenizer(const std::filesystem::path& folder) const {
  return text::Tokenizer::load(folder, {.lowercase = recipe_.tokenizer.lowercase});
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
  std::unique_ptr<data::TextDataset> dataset;
  group_.rank_0_first("tokenising", [&] { dataset = make(); });
  if (!dataset) return make();
  log::info("data       {}: {}", table.name, data::describe_table(table));
  log::info("lengths    {}", data::describe_lengths(dataset->lengths(), recipe_.data.max_length));
  return dataset;
}

FitResult TextClassification::train(const std::vector<std::shared_ptr<Callback>>& callbacks) {
  const text::Tokenizer tokenizer = load_tokenizer(*recipe_.tokenizer.path);
  std::optional<data::LabelSet> expected;
  if (recipe_.model.path) {
    if (const auto labels = trained_labels(models_, *recipe_.model.path)) expected.emplace(*labels);
  }
  data::Table train_table = read(*recipe_.data.train, expected ? &*expected : nullptr, true);
  data::check_training_labels(train_table);
  std::optional<data::Table> validation_table;
  if (recipe_.data.validation) validation_table = read(*recipe_.data.validation, &train_table.labels, true);

  SequenceClassification module(recipe_.model, train_table.labels.names(),
                                static_cast<uint64_t>(recipe_.training.seed), models_);
  compare_inputs(
      tokenizer, module.classifier(),
      {{"data.train", &train_table}, {"data.validation", validation_table ? &*validation_table : nullptr}});
  check_fit(recipe_, tokenizer, module.classifier());
  module.ship_tokenizer(*recipe_.tokenizer.path, tokenizer.lowercase(), train_table.has_pairs);
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
  const text::Tokenizer tokenizer = load_tokenizer(folder.model());
  const auto names = trained_labels(models_, folder.model());
  if (!names) throw DataError("{}: the model has no classification head", folder.model().string());
  const data::LabelSet labels(*names);
  const data::Table table = read(*recipe_.data.test, &labels, false);
  SequenceClassification module(trained, *names, 0, models_);
  compare_inputs(tokenizer, module.classifier(), {{"data.test", &table}});
  check_fit(recipe_, tokenizer, module.classifier());
  const auto dataset = tokenize(table, tokenizer);
  module.root().to(device_, recipe_.training.precision == "fp64" ? at::kDouble : at::kFloat);
  const auto products = choose_products(
      recipe_, module.root(), *dataset, evaluation_batch_size(recipe_),
      recipe_.training.precision == "fp64" ? Precision::fp64 : Precision::fp32, group_, device_);
  if (products) log::info("products   {}", products->describe());
  const Evaluation evaluation = evaluate(module, *dataset, group_,
                                         {.batch_size = evaluation_batch_size(recipe_),
                                          .device = device_,
                                          .kernels = nn::parse_kernels(recipe_.training.kernels)});
  if (group_.rank() != 0) return;
  write_predictions(table, module.classifier().labels(), evaluation.rows);
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
    const text::Tokenizer& tokenizer, const SequenceClassifier& model,
    std::initializer_list<std::pair<const char*, const data::Table*>> tables) const {
  std::vector<Input> inputs = {{"tokenizer", "contents " + hash128_hex(tokenizer.fingerprint())}};
  const nlohmann::json config = model.config_json({});
  for (const auto& [key, value] : config.items()) inputs.push_back({"model config." + key, value.dump()});
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
