#include "stretto/rank/command.h"

#include "stretto/rank/run.h"
#include "stretto/rank/verbs.h"
#include "stretto/tensor/block_cache.h"

namespace stretto::rank {

int run_command(int argc, char** argv) {
  CLI::App app("stretto-rank: what `stretto` starts to do the computing");
  app.require_subcommand(1);
  cli::RecipeArguments recipe;
  cli::PredictArguments prediction;
  cli::ProfileArguments profiling;
  CLI::App* train = app.add_subcommand("train");
  CLI::App* test = app.add_subcommand("test");
  CLI::App* predict = app.add_subcommand("predict");
  CLI::App* profile = app.add_subcommand("profile");
  CLI::App* doctor = app.add_subcommand("doctor");
  doctor->allow_extras();  // how many ranks, which the launcher has read
  cli::add_recipe_arguments(*train, recipe);
  cli::add_recipe_arguments(*test, recipe);
  cli::add_predict_arguments(*predict, prediction);
  cli::add_profile_arguments(*profile, profiling);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return exit_code_of([&] {
    reuse_tensor_memory();
    if (train->parsed()) rank::run_recipe(recipe, Verb::train);
    if (test->parsed()) rank::run_recipe(recipe, Verb::test);
    if (predict->parsed()) rank::predict(prediction);
    if (profile->parsed()) rank::profile(profiling);
    if (doctor->parsed()) rank::doctor();
  });
}

}  // namespace stretto::rank
