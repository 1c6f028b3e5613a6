#pragma once

#include <memory>

#include "stretto/optim/optimizer.h"
#include "stretto/optim_config/optimizer_options.h"

namespace stretto::optim {

// Kingma & Ba 2015, algorithm 2. State: exp_avg, exp_inf.
std::unique_ptr<Optimizer> adamax(const AdamaxOptions& options);

}  // namespace stretto::optim
