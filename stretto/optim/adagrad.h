#pragma once

#include <memory>

#include "stretto/optim/optimizer.h"
#include "stretto/optim_config/optimizer_options.h"

namespace stretto::optim {

// Duchi et al. 2011. State: sum.
std::unique_ptr<Optimizer> adagrad(const AdagradOptions& options);

}  // namespace stretto::optim
