#include "stretto/programs/stretto_rank/program.h"

#include "stretto/base/process.h"
#include "stretto/cluster/managers.h"
#include "stretto/launch/process/command_line.h"
#include "stretto/programs/arguments/launch_recipe.h"
#include "stretto/programs/arguments/parse.h"
#include "stretto/programs/stretto_rank/run.h"
#include "stretto/tensor/block_cache.h"
#include "stretto/trainer/records/summary.h"

namespace stretto {

int run_program(int argc, char** argv, const std::function<FitResult(const Run&)>& train) {
  return run_program(argc, argv, std::vector<settings::Field>(), train);
}

int run_program(int argc, char** argv, std::vector<settings::Field> settings,
                const std::function<FitResult(const Run&)>& train) {
  fill_standard_descriptors();
  block_save_signal();
  CLI::App app("A training program built with stretto", std::filesystem::path(argv[0]).filename());
  arguments::RecipeArguments arguments;
  arguments.program = std::move(settings);
  arguments::add_recipe_arguments(app, arguments);
  if (const auto ended = arguments::parse(app, argc, argv)) return *ended;
  int exit_code = 0;
  const auto as_rank = [&](const Run& run) {
    const FitResult result = train(run);
    if (run.mesh.world().rank() == 0 && !result.stopped && !result.was_finished)
      trainer::write_summary(run.recipe, run.mesh, result);
    return !result.stopped;
  };
  const int failure = rank::exit_code_of([&] {
    reuse_tensor_memory();
    arguments::join_job(arguments.launch);
    if (cluster::is_rank()) return rank::run_rank(argv[0], arguments, Verb::fit, as_rank);
    arguments::apply_foreign_launch(arguments);
    const Recipe recipe = arguments::load_checked(arguments, Verb::fit);
    exit_code = arguments::launch_recipe(arguments, recipe, Verb::fit, launch::own_command());
  });
  return failure != 0 ? failure : exit_code;
}

}  // namespace stretto
