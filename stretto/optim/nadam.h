#pragma once

#include <memory>

#include "stretto/optim/optimizer.h"
#include "stretto/optim_config/optimizer_options.h"

namespace stretto::optim {

// Dozat 2016. State: exp_avg, exp_avg_sq, and the product of its momenta.
std::unique_ptr<Optimizer> nadam(const NadamOptions& options);

}  // namespace stretto::optim
