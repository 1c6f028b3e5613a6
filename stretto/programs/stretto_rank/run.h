#pragma once

#include <functional>
#include <string>

#include "stretto/programs/arguments/recipe_arguments.h"
#include "stretto/programs/stretto_rank/program.h"

namespace stretto::rank {

// Runs one rank: locks the output folder, joins the group, compares the recipe over ranks, opens the log,
// runs `work`, and waits for all ranks. `work` returns false if a signal stopped it after saving a
// checkpoint. `program`: the program's name in the resume command. Throws on failure.
void run_rank(const std::string& program, const arguments::RecipeArguments& arguments, Verb verb,
              const std::function<bool(const Run&)>& work);

// Runs `body`, logs exceptions, and returns the exit code: 0, 2 for malformed input (DataError), or that of
// another exception (programs/arguments/failure.h).
int exit_code_of(const std::function<void()>& body);

}  // namespace stretto::rank
