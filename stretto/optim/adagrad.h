#pragma once

#include <memory>

#include "stretto/hparams/optimizer_options.h"
#include "stretto/optim/optimizer.h"

namespace stretto::optim {

// Duchi et al. 2011. State: sum.
std::unique_ptr<Optimizer> adagrad(const AdagradOptions& options);

}  // namespace stretto::optim
