#pragma once

#include <memory>

#include "stretto/optim/optimizer.h"
#include "stretto/optim_config/optimizer_options.h"

namespace stretto::optim {

// Stochastic gradient descent, with momentum as in Sutskever et al. 2013. State: momentum_buffer, where momentum > 0.
// Throws ConfigError for nesterov without momentum, or with dampening.
std::unique_ptr<Optimizer> sgd(const SgdOptions& options);

}  // namespace stretto::optim
