#pragma once

#include "stretto/cli/predict_arguments.h"
#include "stretto/cli/profile_arguments.h"
#include "stretto/cli/recipe_arguments.h"

namespace stretto::rank {

// The verbs that compute, one file each. They throw on failure.
void run_recipe(const cli::RecipeArguments& arguments, Verb verb);
void doctor();
void profile(const cli::ProfileArguments& arguments);
void predict(const cli::PredictArguments& arguments);

}  // namespace stretto::rank
