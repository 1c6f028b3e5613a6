#pragma once

#include "stretto/config/recipe.h"
#include "stretto/strategy/topology.h"

namespace stretto {

// How messages refer to the settings in a recipe's section `training`: by their keys and positions.
OptionLabels training_labels(const settings::Origins& origins);

// The ranks, batches and strategy that this recipe requests: see resolve(). REQUIRES: the recipe is resolved.
TopologyRequest topology_request(const Recipe& recipe);

}  // namespace stretto
