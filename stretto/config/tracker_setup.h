#pragma once

#include "stretto/config/recipe.h"
#include "stretto/track/registry.h"

namespace stretto {

// The settings from which the trackers of a run are made.
TrackerSetup tracker_setup(const Recipe& recipe);

}  // namespace stretto
