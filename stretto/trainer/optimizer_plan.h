#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stretto/config/recipe.h"
#include "stretto/optim/optim.h"
#include "stretto/parallel/parameters.h"

namespace stretto {

// Settings for the parameters whose name, as root() has it, matches `pattern`: "encoder.layer.0.*", where * stands for
// anything and ? for one character.
struct ParameterGroup {
  std::string pattern;
  double lr_factor = 1;            // times the schedule's learning rate
  std::optional<bool> decay = {};  // whether weight decay applies; unset: not to biases and weights of norms
  bool frozen = false;             // left as it is: no gradient, no memory for one
};

// How a module is trained. A parameter follows the first group that matches it, or no group.
struct OptimizerPlan {
  std::unique_ptr<optim::Optimizer> optimizer;
  std::unique_ptr<optim::Schedule> schedule;
  std::vector<ParameterGroup> groups = {};
};

// What a recipe says.
OptimizerPlan plan_of(const Recipe& recipe);

// The tensors of `root`, with the groups' settings; frozen parameters are constant from here on, and tables are sparse only
// where `optimizer` steps single rows. Throws ConfigError for a
// group that no parameter follows, and as collect_tensors does.
ModuleTensors collect_tensors(const torch::nn::Module& root, const std::vector<ParameterGroup>& groups,
                              const optim::Optimizer& optimizer);

}  // namespace stretto
