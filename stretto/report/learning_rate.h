#pragma once

#include <cstdint>
#include <memory>

#include "stretto/config/recipe.h"
#include "stretto/optim_config/schedule.h"

namespace stretto::report {

// The schedule of a recipe, started for a run of `total_steps`: rates(step - 1) is what a step uses. Throws ConfigError where
// its settings do not fit the run.
std::unique_ptr<optim::Schedule> start_schedule(const Recipe& recipe, int64_t total_steps);

}  // namespace stretto::report
