#pragma once

#include <string>
#include <vector>

#include "stretto/config/recipe.h"
#include "stretto/parallel/parameters.h"

namespace stretto::trainer {

// Combines the groups of Module::configure_optimizers with the section `parameters` of the recipe: one group
// for each parameter that a rule of the recipe concerns, before the module's. Learning rate factors are
// multiplied; for weight decay and freezing, the recipe's rules take precedence. Throws ConfigError for a
// pattern that no parameter's name matches, with the names, and for layer_decay on a module without numbered
// blocks.
std::vector<ParameterGroup> combine_groups(torch::nn::Module& module, const Recipe& recipe,
                                           std::vector<ParameterGroup> of_module);

// The table of the groups for the start of a run: a line for each combination of learning rate and weight
// decay, with the number of tensors and elements. `lr`: the optimizer's rate. `optimizer`: its type, which
// determines whether there is weight decay.
std::string describe_groups(const parallel::ModuleTensors& tensors, double lr, const std::string& optimizer);

// The depth of each parameter for layer_decay, from its name in registration order: 0 for parameters before
// the first numbered block ("encoder.layer.0."), i + 1 for those of block i, and the last block's depth plus
// one for those after it. Empty if there are no numbered blocks.
std::vector<int64_t> layer_depths(const std::vector<std::string>& names);

}  // namespace stretto::trainer
