#include "stretto/config/evaluation.h"

#include "stretto/base/error.h"
#include "stretto/config/model_rule.h"
#include "stretto/config/task_kind.h"

namespace stretto {
namespace {

bool has_samples(const Recipe& recipe) {
  return recipe.data.validation.has_value() || recipe.data.validation_split.has_value();
}

struct Use {
  const char* setting;
  bool in_use;
};

void check_without_evaluations(const Recipe& recipe) {
  const EarlyStoppingConfig& stopping = recipe.early_stopping;
  const std::string why = why_not_evaluated(recipe);
  for (const auto& [setting, in_use] :
       {Use{"early_stopping.patience", stopping.patience.has_value()},
        Use{"early_stopping.stopping_threshold", stopping.stopping_threshold.has_value()},
        Use{"early_stopping.divergence_threshold", stopping.divergence_threshold.has_value()},
        Use{"checkpoint.monitor", recipe.checkpoint.monitor.has_value()},
        Use{"checkpoint.mode", recipe.checkpoint.mode != MetricMode::automatic},
        Use{"checkpoint.keep_best", recipe.checkpoint.keep_best > 0},
        Use{"scheduler.monitor", recipe.origins.given("scheduler.monitor")},
        Use{"evaluate.first_by", recipe.evaluate.first_by.has_value()},
        Use{"evaluate.at_start", recipe.evaluate.at_start},
        Use{"evaluate.max_samples", recipe.evaluate.max_samples && !recipe.training.fast_dev_run},
        Use{"evaluate.sanity_steps", recipe.evaluate.sanity_steps > 0},
        Use{"evaluate.by_class", recipe.evaluate.by_class}, Use{"evaluate.async", recipe.evaluate.async},
        Use{"evaluate.samples", !recipe.evaluate.samples.empty()}}) {
    if (!in_use) continue;
    throw ConfigError("{}: it has no meaning without evaluations, and {}; change that, or remove this",
                      recipe.origins.label(setting), why);
  }
  if (recipe.scheduler.type == "ReduceLROnPlateau" || recipe.scheduler.type == "AnnealOnPlateau") {
    throw ConfigError("{}: {} follows a metric of evaluations, and {}; change one",
                      recipe.origins.label("scheduler.type"), recipe.scheduler.type, why);
  }
  for (const auto& [name, every] : {std::pair("checkpoint.every", recipe.checkpoint.every),
                                    {"track.log_every", recipe.track.log_every}}) {
    if (every.unit() != Interval::Unit::evaluations) continue;
    throw ConfigError(
        "{}: there are no evaluations, as {}; expected steps (500), epochs (1ep) or a time (10m)",
        recipe.origins.label(name), why);
  }
  for (const std::string& text : recipe.checkpoint.save_models) {
    if (parse_model_rule(text).metric == "train_loss") continue;
    throw ConfigError("{}: {} needs evaluations, and {}; only best_train_loss does not",
                      recipe.origins.label("checkpoint.save_models"), text, why);
  }
}

}  // namespace

void resolve_evaluation(Recipe& recipe) {
  if (has_samples(recipe) || recipe.origins.given("evaluate.every")) return;
  recipe.evaluate.every = "never";
  if (!recipe.origins.given("checkpoint.monitor")) recipe.checkpoint.monitor.reset();
}

std::string why_not_evaluated(const Recipe& recipe) {
  const bool trains = recipe.data.train || !recipe.data.mixture.empty();
  const bool implied = trains && !has_samples(recipe) && !recipe.origins.given("evaluate.every");
  return implied ? "data.validation is not set" : recipe.origins.mention("evaluate.every") + " is never";
}

void require_evaluated_samples(const Recipe& recipe) {
  if (recipe.evaluate.every.never() || has_samples(recipe)) return;
  throw ConfigError("{}: there are no samples to evaluate; set data.validation{}, or evaluate.every: never",
                    recipe.origins.label("evaluate.every"),
                    task_kind(recipe).draws_validation ? " or data.validation_split" : "");
}

void check_evaluation(const Recipe& recipe) {
  if (recipe.evaluate.every.unit() == Interval::Unit::evaluations) {
    throw ConfigError(
        "{}: \"{}\" counts evaluations; expected steps (500), epochs (0.5ep), a time (10m) or never",
        recipe.origins.label("evaluate.every"), recipe.evaluate.every.text());
  }
  if (!recipe.evaluate.samples.empty() && !task_kind(recipe).writes_texts) {
    throw ConfigError("{}: only the task {} writes texts; remove it",
                      recipe.origins.label("evaluate.samples"),
                      tasks_with([](const TaskKind& kind) { return kind.writes_texts; }));
  }
  if (recipe.evaluate.every.never()) check_without_evaluations(recipe);
  if (recipe.evaluate.async && recipe.checkpoint.keep_best > 0) {
    throw ConfigError(
        "{}: it needs the metrics when a checkpoint is saved, and {} is true: they come later; remove one, or keep the best models with checkpoint.save_models",
        recipe.origins.label("checkpoint.keep_best"), recipe.origins.mention("evaluate.async"));
  }
}

}  // namespace stretto
