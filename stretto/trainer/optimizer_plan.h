#pragma once

#include <memory>
#include <vector>

#include "stretto/config/recipe.h"
#include "stretto/optim/optim.h"
#include "stretto/parallel/parameters.h"

namespace stretto {

// How a module is trained. A parameter follows the first group that matches it, or no group.
struct OptimizerPlan {
  std::unique_ptr<optim::Optimizer> optimizer;
  std::unique_ptr<optim::Schedule> schedule;
  std::vector<ParameterGroup> groups = {};
};

// As the recipe says.
OptimizerPlan plan_of(const Recipe& recipe);

}  // namespace stretto
