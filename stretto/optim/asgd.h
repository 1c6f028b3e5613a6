#pragma once

#include <memory>

#include "stretto/hparams/optimizer_options.h"
#include "stretto/optim/optimizer.h"

namespace stretto::optim {

// Averaged SGD (Polyak & Juditsky 1992). State: ax, the average of the weights, and the learning rate of the step before.
std::unique_ptr<Optimizer> asgd(const AsgdOptions& options);

}  // namespace stretto::optim
