#include "stretto/rank/command.h"

#include "stretto/command/parse.h"
#include "stretto/rank/run.h"
#include "stretto/rank/verbs.h"
#include "stretto/tensor/block_cache.h"

namespace stretto::rank {

int run_command(int argc, char** argv) {
  CLI::App app("stretto-rank: the ranks of `stretto`", "stretto");
  app.require_subcommand(1);
  command::RecipeArguments recipe;
  command::PredictArguments prediction;
  command::ProfileArguments profiling;
  command::PlanArguments planning;
  CLI::App* train = app.add_subcommand("train");
  CLI::App* test = app.add_subcommand("test");
  CLI::App* predict = app.add_subcommand("predict");
  CLI::App* profile = app.add_subcommand("profile");
  CLI::App* plan = app.add_subcommand("plan");
  CLI::App* doctor = app.add_subcommand("doctor");
  doctor->allow_extras();  // -N, which the launcher handles
  command::add_recipe_arguments(*train, recipe);
  command::add_test_arguments(*test, recipe);
  command::add_predict_arguments(*predict, prediction);
  command::add_profile_arguments(*profile, profiling);
  command::add_plan_arguments(*plan, planning);
  if (const auto ended = command::parse(app, argc, argv)) return *ended;
  return exit_code_of([&] {
    reuse_tensor_memory();
    if (train->parsed()) rank::run_recipe(recipe, Verb::train);
    if (test->parsed()) rank::run_recipe(recipe, Verb::test);
    if (predict->parsed()) rank::predict(prediction);
    if (profile->parsed()) rank::profile(profiling);
    if (plan->parsed()) rank::plan(planning);
    if (doctor->parsed()) rank::doctor();
  });
}

}  // namespace stretto::rank
