#pragma once

#include "stretto/programs/arguments/recipe_arguments.h"

namespace stretto::arguments {

// Throws ConfigError if the batch sizes, mesh and strategy of the recipe, or the heads of its model, do not
// fit a job's ranks. `hosts`: the host of each rank.
void require_job(const RecipeArguments& arguments, const Recipe& recipe,
                 const std::vector<std::string>& hosts);

// Runs `command` once per rank with the launch options in `arguments` and logs in the recipe's output folder;
// returns the exit code. Before it starts processes, throws ConfigError for batch sizes that are invalid for
// the world size, and for ranks that do not fit into memory. REQUIRES: the recipe is checked, and this
// process is not a rank.
int launch_recipe(const RecipeArguments& arguments, const Recipe& recipe, Verb verb,
                  std::vector<std::string> command);

}  // namespace stretto::arguments
