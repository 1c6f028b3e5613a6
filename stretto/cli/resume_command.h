#pragma once

#include <span>
#include <string>

#include "stretto/cli/recipe_arguments.h"

namespace stretto::cli {

// What a user types to go on with a run that was stopped: the command that began it (`command_line`, the program as
// a user types it first, parsed into `arguments`), with the `ranks` of this host where it left them open, and from the run's own checkpoints
// where `recipe` began from others.
std::string resume_command(std::span<const std::string> command_line, const RecipeArguments& arguments,
                           const Recipe& recipe, int ranks);

}  // namespace stretto::cli
