#include "stretto/programs/stretto/trainer_state.h"

#include <cmath>

#include "stretto/base/json.h"
#include "stretto/config/recipe.h"
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
  const double seconds = summary.at("seconds"), steps = summary.at("steps");
  Json metrics = {{"epoch", epoch},
                  {"train_runtime", seconds},
                  {"train_samples_per_second", summary.at("samples_per_second")},
                  {"train_steps_per_second", seconds > 0 ? steps / seconds : 0}};
  if (loss.known()) metrics["train_loss"] = loss.value();
  Json last = metrics;
  last["step"] = summary.at("steps");
  history.push_back(last);
  metrics["train_samples"] = summary.at("training_samples");
  const Recipe recipe = parse_recipe(plan.recipe, plan.recipe_file().string());
  Json state = {{"epoch", epoch},
                {"global_step", summary.at("steps")},
                {"max_steps", summary.at("total_steps")},
                {"num_train_epochs", epochs_of(epoch, steps, summary.at("total_steps"))},
                {"train_batch_size", recipe.training.batch_size ? Json(*recipe.training.batch_size) : Json()},
                {"logging_steps", steps_of(recipe.track.log_every)},
                {"eval_steps", steps_of(recipe.evaluate.every)},
                {"save_steps", steps_of(recipe.checkpoint.every)},
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
