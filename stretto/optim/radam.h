#pragma once

#include <memory>

#include "stretto/optim/optimizer.h"
#include "stretto/optim_config/optimizer_options.h"

namespace stretto::optim {

// Liu et al. 2020. State: exp_avg, exp_avg_sq.
std::unique_ptr<Optimizer> radam(const RadamOptions& options);

}  // namespace stretto::optim
