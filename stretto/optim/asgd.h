#pragma once

#include <memory>

#include "stretto/optim/optimizer.h"
#include "stretto/optim_config/optimizer_options.h"

namespace stretto::optim {

// Averaged SGD (Polyak & Juditsky 1992). State: ax, the average of the weights, and the learning rate of the step before.
std::unique_ptr<Optimizer> asgd(const AsgdOptions& options);

}  // namespace stretto::optim
