#pragma once

#include "stretto/programs/arguments/generate_arguments.h"
#include "stretto/programs/arguments/plan_arguments.h"
#include "stretto/programs/arguments/predict_arguments.h"
#include "stretto/programs/arguments/profile_arguments.h"
#include "stretto/programs/arguments/recipe_arguments.h"

namespace stretto::rank {

// The verbs that compute, one file each. They throw on failure.
void run_recipe(const arguments::RecipeArguments& arguments, Verb verb);
void doctor(const std::filesystem::path& report);  // "": none is written
void plan(const arguments::PlanArguments& arguments);
void profile(const arguments::ProfileArguments& arguments);
void generate(const arguments::GenerateArguments& arguments);
void predict(const arguments::PredictArguments& arguments);

}  // namespace stretto::rank
