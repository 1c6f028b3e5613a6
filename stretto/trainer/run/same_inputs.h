#pragma once

#include <vector>

#include "stretto/base/inputs.h"
#include "stretto/comm/group.h"
#include "stretto/config/recipe.h"

namespace stretto::trainer {

// Compares the inputs of all ranks. If they differ, throws the same ConfigError on every rank, which lists
// each differing input with its values, the ranks that have them and where they were read. Collective.
void require_same_inputs(Group& group, const std::vector<Input>& inputs);

}  // namespace stretto::trainer
