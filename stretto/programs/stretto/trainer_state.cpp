#include "stretto/programs/stretto/trainer_state.h"

#include <cmath>
#include <optional>

#include "stretto/base/json.h"
#include "stretto/config/recipe.h"
#include "stretto/config/task_kind.h"
#include "stretto/model_config/config_json.h"
#include "stretto/model_config/outline.h"
#include "stretto/programs/stretto/run_records.h"

namespace stretto::cli {
namespace {

using Json = nlohmann::json;

// Converts a record of metrics.jsonl to the names of trainer_state.json's log_history.
Json log_entry(const nlohmann::ordered_json& record) {
  Json entry = {{"epoch", record.at("epoch")}, {"step", record.at("step")}};
  for (const auto& [name, value] : record.items())
    if (name == "loss" || name == "grad_norm" || name.starts_with("eval_")) entry[name] = value;
  if (record.contains("lr")) entry["learning_rate"] = record["lr"];
  return entry;
}

int64_t steps_of(const Interval& interval) {
  const double steps = interval.in(Interval::Unit::steps);
  return steps > 0 ? static_cast<int64_t>(steps) : 500;
}

// The number of passes over the data of all steps, including an incomplete one.
int64_t epochs_of(double epoch, double steps, double total_steps) {
  return steps > 0 ? static_cast<int64_t>(std::ceil(total_steps * epoch / steps - 1e-9)) : 0;
}

// The tokens of all steps of a run that may have been resumed, without padding.
double tokens_seen(const Json& summary, double epoch) {
  const double samples = summary.at("samples");
  const double seen = epoch * summary.at("training_samples").get<double>();
  return samples > 0 ? std::round(summary.at("tokens").get<double>() * seen / samples) : 0;
}

// The floating-point operations of training on one token, as transformers' floating_point_ops estimates them:
// 6 per parameter that is not in an embedding table (Kaplan et al. 2020, section 2.1). nullopt for a family
// that is not bundled.
std::optional<double> operations_per_token(const std::filesystem::path& model, const std::string& head) {
  const std::filesystem::path file = model / "config.json";
  const auto outline = outline_of(read_config_json(file), file.string(), head);
  if (!outline) return std::nullopt;
  return 6 * static_cast<double>(outline->elements_without_tables());
}

}  // namespace

TrainerState read_trainer_state(const compat::ScriptPlan& plan) {
  const std::filesystem::path run = plan.run_folder();
  const Json summary = read_json(run / "summary.json");
  Json history = Json::array();
  MeanLoss loss;
  double epoch = 0;
  for (const auto& record : read_records(run / "metrics.jsonl")) {
    history.push_back(log_entry(record));
    if (is_training_record(record)) loss.add(record);
    epoch = record.value("epoch", epoch);
  }
  const double seconds = summary.at("seconds");
  const auto steps = summary.at("steps").get<double>() - summary.at("resumed_after_step").get<double>();
  Json metrics = {{"epoch", epoch},
                  {"train_runtime", seconds},
                  {"train_samples_per_second", summary.at("samples_per_second")},
                  {"train_steps_per_second", seconds > 0 ? steps / seconds : 0}};
  if (loss.known()) metrics["train_loss"] = loss.value();
  const Recipe recipe = parse_recipe(plan.recipe, plan.recipe_file().string());
  const double tokens = tokens_seen(summary, epoch);
  const auto per_token = operations_per_token(run / "model", task_kind(recipe).head);
  if (per_token) metrics["total_flos"] = *per_token * tokens;
  Json last = metrics;
  last["step"] = summary.at("steps");
  history.push_back(last);
  metrics["train_samples"] = summary.at("training_samples");
  Json state = {{"epoch", epoch},
                {"global_step", summary.at("steps")},
                {"max_steps", summary.at("total_steps")},
                {"num_train_epochs", epochs_of(epoch, steps, summary.at("total_steps"))},
                {"train_batch_size", recipe.training.batch_size ? Json(*recipe.training.batch_size) : Json()},
                {"logging_steps", steps_of(recipe.track.log_every)},
                {"eval_steps", steps_of(recipe.evaluate.every)},
                {"save_steps", steps_of(recipe.checkpoint.every)},
                {"num_input_tokens_seen", static_cast<int64_t>(tokens)},
                {"total_flos", per_token ? Json(*per_token * tokens) : Json()},
                {"stateful_callbacks", Json::object()},
                {"best_metric", nullptr},
                {"best_global_step", nullptr},
                {"best_model_checkpoint", nullptr},
                {"is_hyper_param_search", false},
                {"is_local_process_zero", true},
                {"is_world_process_zero", true},
                {"trial_name", nullptr},
                {"trial_params", nullptr},
                {"log_history", history}};
  if (summary.contains("best")) {
    const std::string monitor = recipe.checkpoint.monitor.value_or("loss");
    state["best_metric"] = summary["best"].contains(monitor) ? summary["best"][monitor] : Json();
    state["best_global_step"] = summary.at("best_step");
    state["best_model_checkpoint"] = summary.at("model");
  }
  return {metrics, state};
}

}  // namespace stretto::cli
