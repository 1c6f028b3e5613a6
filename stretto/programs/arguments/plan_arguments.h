#pragma once

#include <optional>

#include "stretto/base/error.h"
#include "stretto/programs/arguments/checks.h"
#include "stretto/programs/arguments/recipe_arguments.h"

namespace stretto::arguments {

// The arguments of `stretto plan`, which stretto-rank parses too. The recipe's launch arguments describe the
// planned job.
struct PlanArguments {
  RecipeArguments recipe;
  std::optional<int64_t> steps;  // to measure; default 6
  double network_gbit = 10;
  double memory_gib = 0;  // per host; 0: the available memory of this host
  int cores = 0;          // per host; 0: the cores of this host
  bool json = false;
  // These apply to a job script, whose model is not measured.
  std::filesystem::path rates;    // figures of `stretto doctor --report`; empty: measure here
  double gflops = 0;              // per core, in matrix products; 0: of the figures
  double copy_gb = 0;             // copied per second by a host; 0: of the figures
  std::optional<double> reached;  // the share of `gflops` that a step reaches; default 0.7
  std::vector<int64_t> scale;     // numbers of hosts; empty: those of the job
};

// Whether the planned job is a job script, not a recipe.
inline bool is_job_script(const std::filesystem::path& file) { return file.extension() == ".sh"; }

// The file to which the first rank writes, as JSON, what it has measured and the rows of the strategies.
inline std::filesystem::path plan_file(const Recipe& recipe) { return recipe.output / "plan" / "report"; }

// Throws ConfigError for options that apply to job scripts only.
inline void refuse_script_options(const PlanArguments& arguments) {
  const bool given = !arguments.rates.empty() || arguments.gflops > 0 || arguments.copy_gb > 0 ||
                     arguments.reached || !arguments.scale.empty();
  if (given)
    throw ConfigError(
        "plan: --rates, --gflops, --copy, --reached and --scale are for job scripts (FILE.sh); the model of a recipe is measured, also for several hosts (--nodes)");
}

// Throws ConfigError for options that apply to recipes only.
inline void refuse_recipe_options(const PlanArguments& arguments) {
  if (arguments.steps)
    throw ConfigError("plan: --steps is for recipes; the model of a job script (FILE.sh) is not measured");
  if (arguments.recipe.files.any())
    throw ConfigError(
        "plan: files of other tools are for recipes; give what a job script (FILE.sh) leaves open as NAME=VALUE or by --strategy and --tp");
}

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
  constexpr const char* group = "JOB SCRIPTS (plan FILE.sh), whose model is not measured";
  verb.add_option("--rates", arguments.rates,
                  "Figures of `stretto doctor --report` on one of the hosts (default: measure this host)")
      ->type_name("FILE")
      ->group(group);
  verb.add_option("--gflops", arguments.gflops,
                  "GFLOP/s of a core in matrix products, instead of the figures")
      ->type_name("GFLOPS")
      ->check(a_number_above_zero)
      ->group(group);
  verb.add_option("--copy", arguments.copy_gb, "GB/s that a host copies, instead of the figures")
      ->type_name("GB/S")
      ->check(a_number_above_zero)
      ->group(group);
  verb.add_option("--reached", arguments.reached,
                  "The share of these GFLOP/s that forward and backward reach (default: 0.7)")
      ->type_name("SHARE")
      ->check(a_share)
      ->group(group);
  verb.add_option("--scale", arguments.scale, "Numbers of hosts, each a line of the table: 8,64,1024")
      ->type_name("N,N,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(whole_number_from(1, 1'000'000))
      ->group(group);
}

}  // namespace stretto::arguments
