#pragma once

#include <memory>

#include "stretto/optim/optimizer.h"
#include "stretto/optim_config/optimizer_options.h"

namespace stretto::optim {

// Limited-memory BFGS (Nocedal 1980; line search: Nocedal and Wright, "Numerical Optimization", algorithms 3.5 and 3.6), as
// torch.optim.LBFGS. A step evaluates its batch up to max_eval times, so it reevaluates(). All parameters are one vector, which
// every rank must hold (Placement::whole_model), with one learning rate: bind() throws ConfigError for an lr_factor other than 1.
// State: history_size changes of the parameters and of the gradient, the last direction and gradient.
std::unique_ptr<Optimizer> lbfgs(const LbfgsOptions& options);

}  // namespace stretto::optim
