#pragma once

#include <span>
#include <string>

#include "stretto/programs/arguments/recipe_arguments.h"

namespace stretto::arguments {

// The command that resumes a stopped run: the command that started it (`command_line`, parsed into
// `arguments`), plus the number of `ranks` on this host if it was not given, and resume=auto if `recipe` has
// another value of `resume`.
std::string resume_command(std::span<const std::string> command_line, const RecipeArguments& arguments,
                           const Recipe& recipe, int ranks);

}  // namespace stretto::arguments
