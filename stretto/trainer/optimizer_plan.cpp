#include "stretto/trainer/optimizer_plan.h"

#include "stretto/base/error.h"

namespace stretto {
namespace {

std::unique_ptr<optim::Optimizer> make_optimizer(const OptimizerConfig& config) {
  if (config.type == "SGD") {
    return optim::sgd({config.lr, config.momentum, config.dampening, config.weight_decay, config.nesterov});
  }
  if (config.type == "AdamW") {
    return optim::adamw({config.lr, config.betas[0], config.betas[1], config.eps, config.weight_decay});
  }
  throw ConfigError("optimizer.type: \"{}\" is not an optimizer; possible: AdamW, SGD", config.type);
}

std::unique_ptr<optim::Schedule> make_schedule(const SchedulerConfig& config) {
  if (config.type == "Constant") return optim::constant();
  if (config.type == "LinearWithWarmup")
    return optim::linear_with_warmup({config.num_warmup_steps, config.warmup_ratio});
  throw ConfigError("scheduler.type: \"{}\" is not a schedule; possible: LinearWithWarmup, Constant",
                    config.type);
}

}  // namespace

OptimizerPlan plan_of(const Recipe& recipe) {
  return {make_optimizer(recipe.optimizer), make_schedule(recipe.scheduler)};
}

}  // namespace stretto
