#pragma once

#include <memory>

#include "stretto/hparams/optimizer_options.h"
#include "stretto/optim/optimizer.h"

namespace stretto::optim {

// Riedmiller & Braun 1993, without weight backtracking. State: prev, step_size.
std::unique_ptr<Optimizer> rprop(const RpropOptions& options);

}  // namespace stretto::optim
