#pragma once

#include "stretto/config/recipe.h"
#include "stretto/strategy/topology.h"

namespace stretto {

// What messages say of the settings in a recipe's section `training`, by their keys there.
OptionLabels training_labels(const settings::Origins& origins);

// What a run by this recipe asks of its ranks: see resolve(). REQUIRES: the recipe is resolved.
TopologyRequest topology_request(const Recipe& recipe);

}  // namespace stretto
