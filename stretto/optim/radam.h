#pragma once

#include <memory>

#include "stretto/hparams/optimizer_options.h"
#include "stretto/optim/optimizer.h"

namespace stretto::optim {

// Liu et al. 2020. State: exp_avg, exp_avg_sq.
std::unique_ptr<Optimizer> radam(const RadamOptions& options);

}  // namespace stretto::optim
