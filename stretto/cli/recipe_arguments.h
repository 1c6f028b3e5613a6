#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "stretto/cli/launch_arguments.h"
#include "stretto/config/check_recipe.h"

namespace stretto::cli {

// The arguments of `stretto train` and `stretto test`. The rank program takes the same ones, so that a verb
// hands its own command line on unchanged.
struct RecipeArguments {
  std::filesystem::path recipe;
  std::vector<std::string> overrides;
  std::string strategy;
  LaunchArguments launch;
};

void add_recipe_arguments(CLI::App& verb, RecipeArguments& arguments);

// The recipe with its overrides, checked for `verb`.
Recipe load_checked(const RecipeArguments& arguments, Verb verb);

}  // namespace stretto::cli
