#include "stretto/trainer/api/optimizer_plan.h"

#include <cmath>

#include "stretto/base/error.h"
#include "stretto/optim/registry.h"
#include "stretto/optim_config/schedule_registry.h"
#include "stretto/optim_config/schedules.h"
#include "stretto/trainer/run/monitor.h"

namespace stretto {
namespace {

// Replaces mode auto by the direction of the metric that the schedule follows.
template <class Options>
void resolve_mode(const Recipe& recipe, SchedulerConfig& scheduler) {
  auto& options = scheduler.as<Options>();
  if (options.mode != "auto") return;
  const auto metric = options.monitor.value_or(recipe.checkpoint.monitor.value_or("loss"));
  const MetricMode mode = options.monitor ? MetricMode::automatic : MetricMode(recipe.checkpoint.mode);
  const trainer::Monitor monitor(recipe.origins.label("scheduler.monitor"), metric, mode);
  options.mode = monitor.larger_is_better() ? "max" : "min";
}

// Sets num_warmup_steps from num_warmup_samples, rounded up.
void resolve_warmup(int64_t global_batch_size, SchedulerConfig& scheduler) {
  if (!scheduler.num_warmup_samples || global_batch_size == 0) return;
  const auto fields = settings::fields_of(scheduler);
  const settings::Field* field = settings::declaration_in_use(fields, "num_warmup_steps");
  if (field == nullptr || !field->rule.in_use())
    throw ConfigError("scheduler.num_warmup_samples: {} has no warm-up", scheduler.type);
  *std::get<std::optional<int64_t>*>(field->slot) =
      (*scheduler.num_warmup_samples + global_batch_size - 1) / global_batch_size;
}

SchedulerConfig resolved_scheduler(const Recipe& recipe, int64_t global_batch_size) {
  SchedulerConfig scheduler = recipe.scheduler;
  resolve_warmup(global_batch_size, scheduler);
  if (scheduler.type == "ReduceLROnPlateau") resolve_mode<optim::ReduceLrOnPlateauOptions>(recipe, scheduler);
  if (scheduler.type == "AnnealOnPlateau") resolve_mode<optim::AnnealOnPlateauOptions>(recipe, scheduler);
  return scheduler;
}

}  // namespace

OptimizerPlan plan_of(const Recipe& recipe, int64_t global_batch_size) {
  return {optim::make_optimizer(recipe.optimizer),
          optim::make_schedule(resolved_scheduler(recipe, global_batch_size))};
}

double lr_scale_of(const OptimizerConfig& optimizer, int64_t global_batch_size) {
  if (optimizer.scale_lr == LrScale::none) return 1;
  if (!optimizer.base_batch_size || global_batch_size == 0)
    throw ConfigError("optimizer.scale_lr: {} needs base_batch_size and a fixed global batch",
                      optimizer.scale_lr);
  const double ratio =
      static_cast<double>(global_batch_size) / static_cast<double>(*optimizer.base_batch_size);
  return optimizer.scale_lr == LrScale::sqrt ? std::sqrt(ratio) : ratio;
}

}  // namespace stretto
