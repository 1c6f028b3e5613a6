#pragma once

#include <memory>

#include "stretto/optim/optimizer.h"

namespace stretto::optim {

// Defaults are torch.optim.SGD's.
struct SgdOptions {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
};

// Stochastic gradient descent, with momentum as in Sutskever et al. 2013. State: momentum_buffer, where momentum > 0.
// Throws ConfigError for nesterov without momentum, or with dampening.
std::unique_ptr<Optimizer> sgd(const SgdOptions& options);

}  // namespace stretto::optim
