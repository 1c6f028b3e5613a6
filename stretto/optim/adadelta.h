#pragma once

#include <memory>

#include "stretto/optim/optimizer.h"
#include "stretto/optim_config/optimizer_options.h"

namespace stretto::optim {

// Zeiler 2012. State: square_avg, acc_delta.
std::unique_ptr<Optimizer> adadelta(const AdadeltaOptions& options);

}  // namespace stretto::optim
