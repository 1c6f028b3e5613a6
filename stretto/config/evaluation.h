#pragma once

#include "stretto/config/recipe.h"

namespace stretto {

// Whether a run is evaluated, and the settings that depend on it.

// A recipe of `stretto train` without data.validation and data.validation_split is trained without
// evaluations: evaluate.every becomes never, unless the recipe sets it. REQUIRES: recipe is resolved.
void resolve_evaluation(Recipe& recipe);

// The reason as messages give it: "data.validation is not set", "evaluate.every (sst2.yaml:9:10) is never".
// REQUIRES: evaluate.every is never.
std::string why_not_evaluated(const Recipe& recipe);

// Throws ConfigError if `stretto train` must evaluate but the recipe names no samples for it.
void require_evaluated_samples(const Recipe& recipe);

// Throws ConfigError for an evaluate.every that counts evaluations, and, in a run without evaluations, for
// the first setting that has no effect without them.
void check_evaluation(const Recipe& recipe);

}  // namespace stretto
