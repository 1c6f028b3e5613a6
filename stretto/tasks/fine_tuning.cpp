#include "stretto/tasks/fine_tuning.h"

#include <chrono>
#include <cmath>

#include "stretto/base/clock.h"
#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/base/log.h"
#include "stretto/config/evaluation.h"
#include "stretto/config/model_json.h"
#include "stretto/tasks/preparation.h"
#include "stretto/trainer/folder/run_folder.h"
#include "stretto/trainer/records/summary.h"
#include "stretto/trainer/run/evaluate.h"
#include "stretto/trainer/run/matmul_libraries.h"
#include "stretto/trainer/run/monitor.h"
#include "stretto/trainer/run/same_inputs.h"

namespace stretto {
namespace {

// The tokenizer and the model's configuration, to compare over ranks.
std::vector<Input> inputs_of(const text::Tokenizer& tokenizer, const TextModel& model) {
  std::vector<Input> inputs = {{"tokenizer", "contents " + hash128_hex(tokenizer.fingerprint())}};
  const nlohmann::json config = model.config_json({});
  for (const auto& [key, value] : config.items()) inputs.push_back({"model config." + key, value.dump()});
  return inputs;
}

void check_fit(const Recipe& recipe, const text::Tokenizer& tokenizer, const TextModel& model,
               int64_t sample_length) {
  const int64_t vocab_size = model.limits().vocab_size, max_length = model.limits().max_length;
  if (tokenizer.vocab_size() > vocab_size) {
    const std::string key = "model.config.vocab_size";
    throw ConfigError(
        "{}the tokenizer has ids up to {}, but the model's vocab_size is {}; set tokenizer.path to the model's own tokenizer, or the vocab_size of a new model to at least {}",
        recipe.origins.given(key) ? recipe.origins.label(key) + ": " : "", tokenizer.vocab_size() - 1,
        vocab_size, tokenizer.vocab_size());
  }
  if (sample_length > max_length) {
    throw ConfigError("{}: {} exceeds the {} positions of the model; set it to {} at most",
                      recipe.origins.label("data.max_length"), sample_length, max_length, max_length);
  }
}

}  // namespace

void FineTuningProgram::require_metrics() const { trainer::require_metrics(recipe_, names_.metrics); }

std::vector<std::string> FineTuningProgram::labels_of_trained_model() const {
  const auto labels = trained_labels(models_, head(), trained_model());
  if (!labels) throw DataError("{}: the model has no {} head", trained_model().string(), names_.head);
  return *labels;
}

text::Tokenizer FineTuningProgram::load_tokenizer(const std::filesystem::path& folder) const {
  return tasks::load_tokenizer(recipe_, folder);
}

void FineTuningProgram::check_inputs(const text::Tokenizer& tokenizer, const TextModel& model,
                                     const std::vector<ReadFile>& files) const {
  std::vector<Input> inputs = inputs_of(tokenizer, model);
  for (const ReadFile& file : files)
    inputs.push_back({file.setting, "contents " + file.content_hash, file.name});
  trainer::require_same_inputs(mesh_.world(), inputs);
  check_fit(recipe_, tokenizer, model, max_length(model));
}

void FineTuningProgram::ship_tokenizer(ModelModule& module, const std::filesystem::path& folder,
                                       const text::Tokenizer& tokenizer) const {
  module.ship_tokenizer(folder, tokenizer.lowercase(), tasks::prefix_space(recipe_));
}

FitResult FineTuningProgram::fit(Module& module, const data::Dataset& train, const data::Dataset* validation,
                                 const std::vector<std::shared_ptr<Callback>>& callbacks) const {
  if (recipe_.evaluate.every.never())
    log::info("evaluation none: {}; the model of the last step is kept", why_not_evaluated(recipe_));
  Trainer trainer(recipe_, mesh_, device_);
  for (const auto& callback : callbacks) trainer.add(callback);
  return trainer.fit(module, train, validation);
}

Predictions FineTuningProgram::evaluate(Module& module, const data::Dataset& dataset) const {
  read_parameters(module);
  const auto start = std::chrono::steady_clock::now();
  trainer::Evaluation evaluation = evaluate_alone(recipe_, trained_model().string(), module, dataset, mesh_,
                                                  device_, trainer::EvaluationStep::validation);
  const double seconds = seconds_since(start);
  const int64_t batch = trainer::evaluation_batch_size(recipe_) * mesh_.size(Axes::data);
  if (is_first()) {
    trainer::RunFolder(recipe_.output)
        .write_json("test_summary.json", {{"samples", dataset.size()},
                                          {"steps", (dataset.size() + batch - 1) / batch},
                                          {"seconds", seconds},
                                          {"ranks", mesh_.size(Axes::world)}});
  }
  return std::move(evaluation.predictions);
}

void FineTuningProgram::with_model_places(const std::function<void()>& make) const {
  with_section_places(recipe_.origins, make);
}

void FineTuningProgram::log_kept_texts() const {
  const std::filesystem::path cache = recipe_.data.cache.value_or(recipe_.output / "cache");
  std::error_code error;
  const bool is_empty = std::filesystem::is_empty(cache, error);
  if (!is_first() || error || is_empty || std::filesystem::exists(recipe_.output / "metrics.jsonl")) return;
  log::info("cache      {}: the tokenised texts are kept for the next run", cache.string());
}

void FineTuningProgram::require_finite_loss(const Metrics& metrics) const {
  const auto loss = metrics.find("loss");
  if (recipe_.checkpoint.allow_nonfinite || loss == metrics.end() || std::isfinite(loss->second)) return;
  throw DataError(
      "{}: the loss is not finite on this data: the model's activations overflow; train the model again, or test it anyway with --allow-nonfinite",
      trained_model().string());
}

void FineTuningProgram::record(const TestResults& results, const Metrics& metrics,
                               const std::string& file) const {
  const trainer::RunFolder folder(recipe_.output);
  if (metrics.empty()) {
    log::info("{} {}: predictions only", file, names_.unlabelled);
    std::filesystem::remove(folder.path() / "test_results.json");  // from other data
  } else {
    folder.write_json("test_results.json", results.record);
    log::info("test       {}", trainer::metrics_text(metrics));
    for (const std::string& line : results.lines)
      if (!line.empty()) log::info("{}", line);
  }
  log::info("predictions {}", (folder.path() / names_.predictions).string());
}

}  // namespace stretto
