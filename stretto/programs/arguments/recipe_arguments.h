#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "stretto/compat/flag_places.h"
#include "stretto/config/recipe.h"
#include "stretto/programs/arguments/foreign_arguments.h"
#include "stretto/programs/arguments/launch_arguments.h"

namespace stretto::arguments {

// The arguments of `stretto train` and `stretto test`. stretto-rank has the same arguments, so that a verb
// passes its command line on unchanged.
struct RecipeArguments {
  std::filesystem::path recipe;        // empty: the files of other tools and the overrides are enough
  std::vector<std::string> overrides;  // KEY=VALUE, with or without --set before it, in order
  std::string strategy;
  int64_t tp = 0;  // 0: the recipe's
  bool sequence_parallel = false;
  compat::ForeignFiles files;     // of other tools
  bool allow_nonfinite = false;   // only for `stretto test`
  compat::FlagPlaces flags = {};  // the flags of a recipe that was translated from a script's flags
  LaunchArguments launch;
  std::vector<settings::Field> program = {};  // settings declared by the program: see load_recipe
};

// REQUIRES: `arguments` outlives the verb.
void add_recipe_arguments(CLI::App& verb, RecipeArguments& arguments);

// Adds the arguments of `stretto test`: those of a recipe, and those that apply to a finished model.
void add_test_arguments(CLI::App& verb, RecipeArguments& arguments);

// Like the function above, for the files of the recipe's arguments.
void apply_foreign_launch(RecipeArguments& arguments);

// `verb`, or test if a file of another tool asks for one (mode: test). Logs the difference.
Verb wanted_verb(const RecipeArguments& arguments, Verb verb);

// Loads the recipe with its overrides and the settings of other tools' files, and checks it for `verb`. Logs
// what it has decided, unless this process is a rank.
Recipe load_checked(const RecipeArguments& arguments, Verb verb);

}  // namespace stretto::arguments
