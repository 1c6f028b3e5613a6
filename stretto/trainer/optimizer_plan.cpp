#include "stretto/trainer/optimizer_plan.h"

#include "stretto/hparams/schedule_registry.h"
#include "stretto/optim/registry.h"

namespace stretto {

OptimizerPlan plan_of(const Recipe& recipe) {
  return {optim::make_optimizer(recipe.optimizer), optim::make_schedule(recipe.scheduler)};
}

}  // namespace stretto
