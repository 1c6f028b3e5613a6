#include "stretto/report/learning_rate.h"

#include "stretto/optim_config/schedule_registry.h"

namespace stretto::report {
namespace {

// The optimizer's own rates, from its settings: momentum, or beta1 of the Adam family.
optim::StepRates base_rates(const OptimizerConfig& optimizer) {
  optim::StepRates rates{.lr = optimizer.value("lr").get<double>()};
  const nlohmann::json momentum = optimizer.value("momentum"), betas = optimizer.value("betas");
  if (momentum.is_number() && momentum.get<double>() > 0) {
    rates.momentum = momentum.get<double>();
  } else if (betas.is_array()) {
    rates.momentum = betas.at(0).get<double>();
  }
  return rates;
}

}  // namespace

std::unique_ptr<optim::Schedule> start_schedule(const Recipe& recipe, int64_t total_steps) {
  auto schedule = optim::make_schedule(recipe.scheduler);
  schedule->start(base_rates(recipe.optimizer), total_steps);
  return schedule;
}

}  // namespace stretto::report
