#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "stretto/compat/flag_places.h"
#include "stretto/config/check_recipe.h"
#include "stretto/programs/arguments/launch_arguments.h"

namespace stretto::arguments {

// The arguments of `stretto train` and `stretto test`. stretto-rank has the same arguments, so that a verb
// passes its command line on unchanged.
struct RecipeArguments {
  std::filesystem::path recipe;
  std::vector<std::string> overrides;  // KEY=VALUE, with or without --set before it, in order
  std::string strategy;
  std::filesystem::path deepspeed, accelerate, parameters,
      hps;                        // configuration files of other tools; empty: none
  bool allow_nonfinite = false;   // only for `stretto test`
  compat::FlagPlaces flags = {};  // the flags of a recipe that was translated from a script's flags
  LaunchArguments launch;
  std::vector<settings::Field> program = {};  // settings declared by the program: see load_recipe
};

// REQUIRES: `arguments` outlives the verb.
void add_recipe_arguments(CLI::App& verb, RecipeArguments& arguments);

// Adds the arguments of `stretto test`: those of a recipe, and those that apply to a finished model.
void add_test_arguments(CLI::App& verb, RecipeArguments& arguments);

// Logs the ignored keys in files of other tools, and uses their number of ranks if none is given. Call it
// once per job, before its recipe is loaded. Throws ConfigError if both numbers are given and differ.
void apply_foreign_launch(RecipeArguments& arguments);

// Loads the recipe with its overrides and the settings of other tools' files, and checks it for `verb`.
Recipe load_checked(const RecipeArguments& arguments, Verb verb);

}  // namespace stretto::arguments
