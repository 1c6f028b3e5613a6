#pragma once

#include <cstdint>
#include <memory>

#include "stretto/config/recipe.h"
#include "stretto/optim_config/schedule.h"

namespace stretto::report {

// The schedule of a recipe, started for a run of `total_steps`: rates(step - 1) are the rates of a step.
// Throws ConfigError if its settings are invalid for the run.
std::unique_ptr<optim::Schedule> start_schedule(const Recipe& recipe, int64_t total_steps);

}  // namespace stretto::report
