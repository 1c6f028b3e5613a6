#pragma once

#include <functional>
#include <string>

#include "stretto/command/recipe_arguments.h"
#include "stretto/rank/program.h"

namespace stretto::rank {

// What every rank does before and after its part of a run: opens the log, locks the run folder, joins the other ranks,
// compares the recipe with theirs, runs `work`, and leaves together with the others. `work` returns false where a signal
// stopped it and a checkpoint holds the state. `program` is the program's name as a user types it. Throws on failure.
void run_rank(const std::string& program, const command::RecipeArguments& arguments, Verb verb,
              const std::function<bool(const Run&)>& work);

// Runs `body` and returns the exit code: 0, 2 for malformed input (DataError), or that of another exception; exceptions are
// logged.
int exit_code_of(const std::function<void()>& body);

}  // namespace stretto::rank
