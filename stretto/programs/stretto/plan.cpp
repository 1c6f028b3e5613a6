#include <algorithm>
#include <iostream>
#include <memory>
#include <utility>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/config/topology_request.h"
#include "stretto/launch/launch.h"
#include "stretto/programs/arguments/plan_arguments.h"
#include "stretto/programs/arguments/recipe_handover.h"
#include "stretto/programs/stretto/rank_program.h"
#include "stretto/programs/stretto/verbs.h"

namespace stretto::cli {
namespace {

// Measures on one rank; the arguments describe the planned job.
int plan(arguments::PlanArguments& arguments) {
  arguments::apply_foreign_launch(arguments.recipe);
  const Recipe recipe = arguments::load_checked(arguments.recipe, Verb::train);
  if (recipe.training.mesh.tp > 1) {
    throw ConfigError("{}: plan measures whole models, on one rank; remove this, or profile the run instead",
                      recipe.origins.label("training.mesh.tp"));
  }
  launch::LaunchOptions options{
      .command = rank_command(), .log_folder = recipe.output / "plan", .own_program = true};
  arguments::LaunchArguments measuring = arguments.recipe.launch;
  const int hosts = std::max(1, std::exchange(measuring.hosts, {}).nodes);
  arguments::apply(measuring, options);
  const int planned = options.ranks == 0 ? launch::default_ranks() : options.ranks;
  resolve(topology_request(recipe), equal_hosts(hosts, planned));
  options.ranks = 1;
  options.pin = false;  // the rank sees all cores
  const arguments::RecipeHandover handover(arguments.recipe, recipe);
  options.environment = handover.environment();
  make_folders(options.log_folder);
  std::filesystem::remove(arguments::plan_file(recipe));
  const int code = launch::run(options);
  if (code != 0 || !std::filesystem::exists(arguments::plan_file(recipe))) return code;  // or interrupted
  std::cout << read_file(arguments::plan_file(recipe));
  remove_folder(options.log_folder);
  return code;
}

}  // namespace

void add_plan(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand("plan", "Predict memory and step time of a recipe under each strategy");
  auto arguments = std::make_shared<arguments::PlanArguments>();
  arguments::add_plan_arguments(*verb, *arguments);
  verb->callback([arguments, &exit_code] { exit_code = plan(*arguments); });
}

}  // namespace stretto::cli
