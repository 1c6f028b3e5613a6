#pragma once

#include <vector>

#include "stretto/base/inputs.h"
#include "stretto/config/recipe.h"

namespace stretto {

// The settings of a recipe that must be the same on all ranks and hosts, as inputs.
std::vector<Input> inputs_of(const Recipe& recipe);

}  // namespace stretto
