#pragma once

#include <memory>

#include "stretto/optim/optimizer.h"
#include "stretto/optim_config/optimizer_options.h"

namespace stretto::optim {

// Tieleman & Hinton 2012; centered: Graves 2013. State: square_avg, and grad_avg (centered), momentum_buffer (momentum > 0).
std::unique_ptr<Optimizer> rmsprop(const RmspropOptions& options);

}  // namespace stretto::optim
