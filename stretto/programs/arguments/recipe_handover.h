#pragma once

#include <map>
#include <string>

#include "stretto/base/fd.h"
#include "stretto/programs/arguments/recipe_arguments.h"

namespace stretto::arguments {

// Passes the recipe from the launcher to its ranks in sealed memory, which they inherit. The recipe is
// resolved once, so that all ranks use the same settings even if the file or an environment variable changes.
class RecipeHandover {
 public:
  // REQUIRES: recipe is that of `arguments`, resolved and checked. Throws IoError.
  RecipeHandover(const RecipeArguments& arguments, const Recipe& recipe);

  // Environment variables for the ranks. REQUIRES: the ranks are started during the lifetime of this object.
  std::map<std::string, std::string> environment() const;

 private:
  Fd memory_;
};

// The recipe of a rank: from stretto's launcher or, under other launchers, by load_checked().
Recipe recipe_of_rank(const RecipeArguments& arguments, Verb verb);

}  // namespace stretto::arguments
