#pragma once

#include <map>
#include <string>

#include "stretto/base/fd.h"
#include "stretto/cli/recipe_arguments.h"

namespace stretto::cli {

// The recipe of a launcher for the ranks it starts: resolved once, so that all ranks work by the same settings even if
// the file or an environment variable changes meanwhile. It lies in sealed memory that the ranks inherit.
class RecipeHandover {
 public:
  // REQUIRES: recipe is what `arguments` name, resolved and checked. Throws IoError.
  RecipeHandover(const RecipeArguments& arguments, const Recipe& recipe);

  // What the ranks must find in their environment. REQUIRES: they are started while this object lives.
  std::map<std::string, std::string> environment() const;

 private:
  Fd memory_;
};

// The recipe of a rank: the one that its launcher has handed over or, under another launcher, load_checked().
Recipe recipe_of_rank(const RecipeArguments& arguments, Verb verb);

}  // namespace stretto::cli
