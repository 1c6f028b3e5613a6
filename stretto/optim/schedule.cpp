#include "stretto/optim/schedule.h"

namespace stretto::optim {

void Schedule::start(const StepRates& base, int64_t total_steps) {
  base_ = base;
  total_steps_ = total_steps;
  on_start();
}

}  // namespace stretto::optim
