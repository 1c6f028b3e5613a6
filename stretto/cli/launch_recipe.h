#pragma once

#include "stretto/cli/recipe_arguments.h"

namespace stretto::cli {

// Runs `command` once a rank, for `recipe` as the arguments say, its logs in the recipe's output folder; returns the exit
// code to end with. Refuses batch sizes that do not fit the ranks before a process is started. REQUIRES: the recipe is
// checked, and this process is no rank.
int launch_recipe(const RecipeArguments& arguments, const Recipe& recipe, Verb verb,
                  std::vector<std::string> command);

}  // namespace stretto::cli
