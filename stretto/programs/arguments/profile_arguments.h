#pragma once

#include "stretto/programs/arguments/checks.h"
#include "stretto/programs/arguments/recipe_arguments.h"

namespace stretto::arguments {

// The arguments of `stretto profile`, which stretto-rank parses too.
struct ProfileArguments {
  RecipeArguments recipe;
  int64_t steps = 10;
  int64_t warmup_steps = 5;
};

inline void add_profile_arguments(CLI::App& verb, ProfileArguments& arguments) {
  add_recipe_arguments(verb, arguments.recipe);
  verb.add_option("--steps", arguments.steps, "Steps to record (default: 10)")
      ->type_name("N")
      ->check(whole_number_from(1, 1000));
  verb.add_option("--warmup-steps", arguments.warmup_steps, "Steps before the recorded ones (default: 5)")
      ->type_name("N")
      ->check(whole_number_from(0, 1'000'000));
}

}  // namespace stretto::arguments
