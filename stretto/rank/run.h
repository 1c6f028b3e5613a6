#pragma once

#include <functional>
#include <string>

#include "stretto/cli/recipe_arguments.h"
#include "stretto/rank/program.h"

namespace stretto::rank {

// What every rank does around its part of a run: the log, the run folder's lock, meeting the other ranks, config.yaml;
// `work`, which says whether it came to its end (false: a signal stopped it, and a checkpoint holds the state); leaving
// together. `program` is its name as a user types it. Throws on failure.
void run_rank(const std::string& program, const cli::RecipeArguments& arguments, Verb verb,
              const std::function<bool(const Run&)>& work);

// The exit code for what `body` does: 0, an Error's own, 2 (never restarted) for a DataError, or 70 for other exceptions;
// errors are logged.
int exit_code_of(const std::function<void()>& body);

}  // namespace stretto::rank
