#pragma once

#include <memory>

#include "stretto/optim/optimizer.h"
#include "stretto/optim_config/optimizer_options.h"

namespace stretto::optim {

// Kingma & Ba 2015, algorithm 1; amsgrad: Reddi et al. 2018. State: exp_avg, exp_avg_sq, and max_exp_avg_sq with amsgrad.
std::unique_ptr<Optimizer> adam(const AdamOptions& options);

}  // namespace stretto::optim
