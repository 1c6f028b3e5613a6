#pragma once

#include <string>
#include <vector>

#include "stretto/comm/group.h"
#include "stretto/config/recipe.h"

namespace stretto {

// One thing that every rank reads for itself and that all must read alike.
struct Input {
  std::string name;        // "optimizer.lr", "data.train"
  std::string value;       // a setting's value, or what contents hash to
  std::string place = {};  // where this rank read it: "sst2.yaml:14:7", a path
};

// The settings of a recipe as inputs.
std::vector<Input> inputs_of(const Recipe& recipe);

// Compares the inputs of all ranks. Where a rank differs, throws ConfigError, the same at every rank, that names each
// input in question with the values, the ranks that have them and the places. Collective.
void require_same_inputs(Group& group, const std::vector<Input>& inputs);

}  // namespace stretto
