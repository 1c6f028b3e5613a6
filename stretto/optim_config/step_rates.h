#pragma once

#include <optional>

namespace stretto::optim {

// What a schedule sets for one step.
struct StepRates {
  double lr = 0;                        // times each parameter's own lr_factor
  std::optional<double> momentum = {};  // momentum, or beta1 of the Adam family; unset: the optimizer's own
};

}  // namespace stretto::optim
