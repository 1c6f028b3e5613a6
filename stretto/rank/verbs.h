#pragma once

#include "stretto/command/plan_arguments.h"
#include "stretto/command/predict_arguments.h"
#include "stretto/command/profile_arguments.h"
#include "stretto/command/recipe_arguments.h"

namespace stretto::rank {

// The verbs that compute, one file each. They throw on failure.
void run_recipe(const command::RecipeArguments& arguments, Verb verb);
void doctor();
void plan(const command::PlanArguments& arguments);
void profile(const command::ProfileArguments& arguments);
void predict(const command::PredictArguments& arguments);

}  // namespace stretto::rank
