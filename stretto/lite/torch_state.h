#pragma once

#include <string>

#include <torch/optim/optimizer.h>
#include <torch/optim/schedulers/lr_scheduler.h>

#include "stretto/parallel/parameters.h"
#include "stretto/tensor/state.h"

namespace stretto::lite {

// The state of torch's optimizers as entries "<prefix>.<tensor>.<parameter>" of the state table, with steps
// and learning rates in the scalars. For a table that a source fills, memory is allocated for the
// tensors of the source. `holders`: the ranks that step the same parameters. Throws ConfigError for an
// optimizer whose state is not supported (LBFGS, a user-defined class).
void add_torch_state(torch::optim::Optimizer& optimizer,
                     const std::vector<parallel::NamedParameter>& parameters, State& state,
                     const std::string& prefix, const Holders& holders);

// Restores the scalars, after the tensors were loaded.
void resume_torch_state(torch::optim::Optimizer& optimizer,
                        const std::vector<parallel::NamedParameter>& parameters, const State& state,
                        const std::string& prefix);

// The step counter of one of torch's schedulers, which is its whole state: learning rates belong to the
// optimizer.
unsigned& scheduler_steps(torch::optim::LRScheduler& scheduler);

}  // namespace stretto::lite
