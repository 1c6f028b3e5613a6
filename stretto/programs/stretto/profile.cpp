#include <memory>

#include "stretto/base/files.h"
#include "stretto/cluster/environment.h"
#include "stretto/launch/launch.h"
#include "stretto/programs/arguments/launch_recipe.h"
#include "stretto/programs/arguments/profile_arguments.h"
#include "stretto/programs/arguments/recipe_handover.h"
#include "stretto/programs/stretto/rank_program.h"
#include "stretto/programs/stretto/verbs.h"

namespace stretto::cli {
namespace {

int profile(arguments::ProfileArguments& arguments) {
  const bool launched = cluster::read_rank_info().launched;
  if (!launched) arguments::apply_foreign_launch(arguments.recipe);
  const Recipe recipe = arguments::load_checked(arguments.recipe, Verb::train);
  if (launched) become_rank_program();
  launch::LaunchOptions options{
      .command = rank_command(), .log_folder = recipe.output / "profile", .own_program = true};
  arguments::apply(arguments.recipe.launch, options);
  if (options.ranks == 0) options.ranks = launch::default_ranks();
  arguments::require_job(arguments.recipe, recipe, options.hosts.hosts_of_ranks(options.ranks));
  const arguments::RecipeHandover handover(arguments.recipe, recipe);
  options.environment = handover.environment();
  make_folders(options.log_folder);
  return launch::run(options);
}

}  // namespace

void add_profile(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand("profile", "Run some steps of a recipe and report where time is spent");
  auto arguments = std::make_shared<arguments::ProfileArguments>();
  arguments::add_profile_arguments(*verb, *arguments);
  verb->callback([arguments, &exit_code] { exit_code = profile(*arguments); });
}

}  // namespace stretto::cli
