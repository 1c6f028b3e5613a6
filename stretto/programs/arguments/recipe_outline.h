#pragma once

#include <optional>

#include "stretto/config/recipe.h"
#include "stretto/model_config/outline.h"

namespace stretto::arguments {

// The model of a bundled family that the recipe trains; nullopt if config.json does not describe one with the
// task's head, which the ranks report.
std::optional<ModelOutline> outline_of(const Recipe& recipe);

}  // namespace stretto::arguments
