#include "stretto/trainer/optimizer_plan.h"

#include "stretto/hparams/schedule_registry.h"
#include "stretto/hparams/schedules/plateau.h"
#include "stretto/optim/registry.h"
#include "stretto/trainer/monitor.h"

namespace stretto {
namespace {

// With mode auto, the direction of the metric that the schedule follows.
template <class Options>
void resolve_mode(const Recipe& recipe, SchedulerConfig& scheduler) {
  auto& options = scheduler.as<Options>();
  if (options.mode != "auto") return;
  const auto metric = options.monitor.value_or(recipe.checkpoint.monitor.value_or("loss"));
  const std::string mode = options.monitor ? "auto" : recipe.checkpoint.mode;
  options.mode = Monitor("scheduler", metric, mode).larger_is_better() ? "max" : "min";
}

SchedulerConfig resolved_scheduler(const Recipe& recipe) {
  SchedulerConfig scheduler = recipe.scheduler;
  if (scheduler.type == "ReduceLROnPlateau") resolve_mode<optim::ReduceLrOnPlateauOptions>(recipe, scheduler);
  if (scheduler.type == "AnnealOnPlateau") resolve_mode<optim::AnnealOnPlateauOptions>(recipe, scheduler);
  return scheduler;
}

}  // namespace

OptimizerPlan plan_of(const Recipe& recipe) {
  return {optim::make_optimizer(recipe.optimizer), optim::make_schedule(resolved_scheduler(recipe))};
}

}  // namespace stretto
