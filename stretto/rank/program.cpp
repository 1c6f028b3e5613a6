#include "stretto/rank/program.h"

#include "stretto/base/process.h"
#include "stretto/cli/launch_recipe.h"
#include "stretto/cluster/environment.h"
#include "stretto/launch/command_line.h"
#include "stretto/rank/run.h"
#include "stretto/tensor/block_cache.h"
#include "stretto/trainer/summary.h"

namespace stretto {

int run_program(int argc, char** argv, const std::function<FitResult(const Run&)>& train) {
  fill_standard_descriptors();
  hold_save_requests();
  CLI::App app("A training program, made with stretto");
  cli::RecipeArguments arguments;
  cli::add_recipe_arguments(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  int exit_code = 0;
  const auto as_rank = [&](const Run& run) {
    const FitResult result = train(run);
    if (run.group.rank() == 0 && !result.stopped) write_summary(run.recipe, run.group, result);
    return !result.stopped;
  };
  const int failure = rank::exit_code_of([&] {
    reuse_tensor_memory();
    if (cluster::read_rank_info().launched) return rank::run_rank(argv[0], arguments, Verb::fit, as_rank);
    const Recipe recipe = cli::load_checked(arguments, Verb::fit);
    exit_code = cli::launch_recipe(arguments, recipe, Verb::fit, launch::own_command());
  });
  return failure != 0 ? failure : exit_code;
}

}  // namespace stretto
