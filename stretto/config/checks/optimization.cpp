#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/config/checks/checks.h"
#include "stretto/settings/check_settings.h"
#include "stretto/settings/describe.h"

namespace stretto {
namespace {

bool has_warmup(SchedulerConfig scheduler) {
  const auto fields = settings::fields_of(scheduler);
  const settings::Field* field = settings::declaration_in_use(fields, "num_warmup_steps");
  return field != nullptr && field->rule.in_use();
}

// Checks a section whose settings depend on its type.
void check_choice(const Recipe& recipe, const std::string& section, const settings::Choice& choice) {
  try {
    choice.check();
  } catch (const settings::SettingError& error) {
    throw ConfigError("{}: {}", recipe.origins.label(section + "." + error.key, section + ".type"),
                      error.problem);
  }
}

// Checks the warm-up that is given in samples: it replaces the schedule's own settings and requires a fixed
// global batch.
void check_warmup_samples(const Recipe& recipe) {
  if (!recipe.scheduler.num_warmup_samples) return;
  const auto& origins = recipe.origins;
  const std::string place = origins.label("scheduler.num_warmup_samples");
  if (!has_warmup(recipe.scheduler))
    throw ConfigError("{}: {} has no warm-up; remove this, or change {}", place, recipe.scheduler.type,
                      origins.mention("scheduler.type"));
  for (const char* other : {"num_warmup_steps", "warmup_ratio"}) {
    if (recipe.scheduler.value(other).is_null()) continue;
    throw ConfigError("{}: the warm-up is set twice; remove this or {}", place,
                      origins.mention(std::string("scheduler.") + other));
  }
  if (recipe.training.max_tokens)
    throw ConfigError(
        "{}: the number of samples per step varies with {}; use num_warmup_steps or warmup_ratio", place,
        origins.mention("training.max_tokens"));
}

void check_average(const Recipe& recipe) {
  if (recipe.ema.decay || (!recipe.ema.warmup && recipe.ema.evaluate)) return;
  throw ConfigError("{}: it has no effect without ema.decay; set ema.decay, such as 0.999",
                    recipe.origins.label(recipe.ema.warmup ? "ema.warmup" : "ema.evaluate"));
}

void check_loss_scale(const Recipe& recipe) {
  const auto& origins = recipe.origins;
  LossScaleConfig scale = recipe.loss_scale, defaults;
  const auto fields = settings::fields_of(scale), unset = settings::fields_of(defaults);
  for (size_t i = 0; i < fields.size() && recipe.training.precision != Precision::fp16; ++i) {
    if (settings::value_of(fields[i]) == settings::value_of(unset[i])) continue;
    throw ConfigError("{}: it applies to fp16; {} is {}; remove one",
                      origins.label("loss_scale." + fields[i].key), origins.mention("training.precision"),
                      recipe.training.precision);
  }
  if (scale.min_scale > scale.init_scale) {
    throw ConfigError("{}: {} is above {}, which is {}", origins.label("loss_scale.min_scale"),
                      scale.min_scale, origins.mention("loss_scale.init_scale"), scale.init_scale);
  }
}

void check_lr_scale(const Recipe& recipe) {
  const auto& origins = recipe.origins;
  const OptimizerConfig& optimizer = recipe.optimizer;
  if (optimizer.scale_lr == LrScale::none) {
    if (!optimizer.base_batch_size) return;
    throw ConfigError("{}: it has no effect with scale_lr: none; set optimizer.scale_lr to linear or sqrt",
                      origins.label("optimizer.base_batch_size"));
  }
  const std::string place = origins.label("optimizer.scale_lr");
  if (!optimizer.base_batch_size)
    throw ConfigError("{}: {} needs optimizer.base_batch_size, the global batch size for which lr is given",
                      place, optimizer.scale_lr);
  if (recipe.training.max_tokens)
    throw ConfigError("{}: the global batch size varies with {}; set training.global_batch_size instead",
                      place, origins.mention("training.max_tokens"));
  if (recipe.scheduler.type == "OneCycleLR" || recipe.scheduler.type == "CyclicLR")
    throw ConfigError("{}: {} sets the rates itself, by max_lr; scale max_lr, or use another scheduler",
                      place, recipe.scheduler.type);
}

void check_scheduler(const Recipe& recipe) {
  check_warmup_samples(recipe);
  check_lr_scale(recipe);
  const auto& origins = recipe.origins;
  const nlohmann::json warmup = recipe.scheduler.value("num_warmup_steps");
  if (!warmup.is_null() && !recipe.scheduler.value("warmup_ratio").is_null()) {
    throw ConfigError("{}: the warm-up is set twice; remove this or {}",
                      origins.label("scheduler.warmup_ratio"), origins.mention("scheduler.num_warmup_steps"));
  }
  const auto& max_steps = recipe.training.max_steps;
  if (!warmup.is_null() && max_steps && warmup.get<int64_t>() > *max_steps) {
    throw ConfigError("{}: a warm-up of {} is longer than {}, which is {}",
                      origins.label("scheduler.num_warmup_steps"), counted(warmup.get<int64_t>(), "step"),
                      origins.mention("training.max_steps"), *max_steps);
  }
  check_choice(recipe, "scheduler", recipe.scheduler);
}

}  // namespace

// LBFGS compares gradients with changes of the loss, so they must not be modified.
void require_whole_gradients(const Recipe& recipe, const std::string& optimizer) {
  const TrainingConfig& training = recipe.training;
  if (training.precision == Precision::fp16) {
    throw ConfigError("{}: {} evaluates a batch several times with one loss scale; use bf16 or fp32",
                      recipe.origins.label("training.precision"), optimizer);
  }
  if (training.max_grad_norm <= 0 && !training.max_grad_value) return;
  throw ConfigError(
      "{}: {} compares gradients with changes of the loss, so it cannot use clipped gradients; set training.max_grad_norm to 0 and remove max_grad_value",
      recipe.origins.label(training.max_grad_value ? "training.max_grad_value" : "training.max_grad_norm"),
      optimizer);
}

void check_optimization(const Recipe& recipe) {
  check_average(recipe);
  check_loss_scale(recipe);
  check_choice(recipe, "optimizer", recipe.optimizer);
  check_scheduler(recipe);
}

}  // namespace stretto
