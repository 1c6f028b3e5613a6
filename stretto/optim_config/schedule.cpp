#include "stretto/optim_config/schedule.h"

#include "stretto/base/error.h"

namespace stretto::optim {

void Schedule::start(const StepRates& base, int64_t total_steps) {
  base_ = base;
  total_steps_ = total_steps;
  on_start();
}

void Schedule::require_momentum() const {
  if (base_.momentum) return;
  throw ConfigError(
      "{}: cycle_momentum needs an optimizer with momentum; set its momentum above 0, or cycle_momentum: false",
      name());
}

}  // namespace stretto::optim
