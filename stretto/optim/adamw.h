#pragma once

#include <memory>

#include "stretto/optim/optimizer.h"
#include "stretto/optim_config/optimizer_options.h"

namespace stretto::optim {

// Adam with decoupled weight decay (Loshchilov & Hutter 2019, algorithm 2). State: exp_avg, exp_avg_sq. With eps > 0 it
// steps rows of tables.
std::unique_ptr<Optimizer> adamw(const AdamwOptions& options);

}  // namespace stretto::optim
