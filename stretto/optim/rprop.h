#pragma once

#include <memory>

#include "stretto/optim/optimizer.h"
#include "stretto/optim_config/optimizer_options.h"

namespace stretto::optim {

// Riedmiller & Braun 1993, without weight backtracking. State: prev, step_size.
std::unique_ptr<Optimizer> rprop(const RpropOptions& options);

}  // namespace stretto::optim
