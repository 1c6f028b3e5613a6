#pragma once

#include "stretto/programs/arguments/checks.h"
#include "stretto/programs/arguments/recipe_arguments.h"

namespace stretto::arguments {

// The arguments of `stretto plan`, which stretto-rank parses too. The recipe's launch arguments describe the
// planned job.
struct PlanArguments {
  RecipeArguments recipe;
  int64_t steps = 6;
  double network_gbit = 10;
  double memory_gib = 0;  // per host; 0: the available memory of this host
  int cores = 0;          // per host; 0: the cores of this host
  bool json = false;
};

// The file to which the first rank writes, as JSON, what it has measured and the rows of the strategies.
inline std::filesystem::path plan_file(const Recipe& recipe) { return recipe.output / "plan" / "report"; }

inline void add_plan_arguments(CLI::App& verb, PlanArguments& arguments) {
  add_recipe_arguments(verb, arguments.recipe);
  verb.add_option("--steps", arguments.steps, "Steps to measure (default: 6)")
      ->type_name("N")
      ->check(whole_number_from(2, 1000));
  verb.add_option("--memory", arguments.memory_gib, "GiB of memory per host (default: what this host has)")
      ->type_name("GIB")
      ->check(a_number_above_zero);
  verb.add_option("--cores", arguments.cores, "Cores per host (default: those of this host)")
      ->type_name("N")
      ->check(whole_number_from(1, 100'000));
  verb.add_option("--network", arguments.network_gbit, "Gbit/s between hosts (default: 10)")
      ->type_name("GBITS")
      ->check(a_number_above_zero);
  verb.add_flag("--json", arguments.json, "Print JSON");
}

}  // namespace stretto::arguments
