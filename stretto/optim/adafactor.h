#pragma once

#include <memory>

#include "stretto/optim/optimizer.h"
#include "stretto/optim_config/optimizer_options.h"

namespace stretto::optim {

// Shazeer & Stern 2018, as torch.optim.Adafactor. Steps whole tensors. State: row_var [.., R, 1] and col_var [.., 1, C] of
// tensors with two or more dimensions, variance of others.
std::unique_ptr<Optimizer> adafactor(const AdafactorOptions& options);

}  // namespace stretto::optim
