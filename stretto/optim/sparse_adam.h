#pragma once

#include <memory>

#include "stretto/optim/optimizer.h"
#include "stretto/optim_config/optimizer_options.h"

namespace stretto::optim {

// Adam that leaves rows without a gradient as they are: torch.optim.SparseAdam for tables whose gradients are
// rows (nn::Embedding, sparse), where neither the averages nor the weights of other rows change; Adam for all
// other parameters, which torch's refuses. A row has a gradient if one of its values is not zero, so that the
// steps are the same under every strategy; torch also steps a row that was looked up with a gradient of zeros.
std::unique_ptr<Optimizer> sparse_adam(const SparseAdamOptions& options);

}  // namespace stretto::optim
