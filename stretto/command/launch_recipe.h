#pragma once

#include "stretto/command/recipe_arguments.h"

namespace stretto::command {

// Runs `command` once per rank for `recipe`, as the arguments say, with logs in the recipe's output folder; returns the exit
// code to end with. Refuses batch sizes that do not fit the world size before a process is started. REQUIRES: the recipe is
// checked, and this process is not a rank.
int launch_recipe(const RecipeArguments& arguments, const Recipe& recipe, Verb verb,
                  std::vector<std::string> command);

}  // namespace stretto::command
