#pragma once

#include <optional>

#include "stretto/config/recipe.h"
#include "stretto/model_config/outline.h"

namespace stretto::arguments {

// The model of a bundled family that the recipe trains; nullopt if config.json does not describe one with the
// task's head, which the ranks report.
std::optional<ModelOutline> outline_of(const Recipe& recipe);

// Throws ConfigError if the recipe's training.mesh.tp ranks cannot divide the heads of that model. Ranks
// check models of all families.
void require_division(const Recipe& recipe);

}  // namespace stretto::arguments
