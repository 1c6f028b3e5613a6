#pragma once

#include <span>
#include <string>

#include "stretto/command/recipe_arguments.h"

namespace stretto::command {

// The command that resumes a run that was stopped: the one that started it (`command_line`, beginning with the program as
// a user types it, parsed into `arguments`), with the number of `ranks` on this host if it was not given, and with
// resume=auto where `recipe` started from other checkpoints.
std::string resume_command(std::span<const std::string> command_line, const RecipeArguments& arguments,
                           const Recipe& recipe, int ranks);

}  // namespace stretto::command
