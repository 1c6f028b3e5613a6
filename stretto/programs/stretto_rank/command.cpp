#include "stretto/programs/stretto_rank/command.h"

#include "stretto/programs/arguments/doctor_report.h"
#include "stretto/programs/arguments/parse.h"
#include "stretto/programs/stretto_rank/run.h"
#include "stretto/programs/stretto_rank/verbs.h"
#include "stretto/tensor/block_cache.h"

namespace stretto::rank {

int run_command(int argc, char** argv) {
  CLI::App app("stretto-rank: the ranks of `stretto`", "stretto");
  app.require_subcommand(1);
  arguments::RecipeArguments recipe;
  arguments::PredictArguments prediction;
  arguments::GenerateArguments generation;
  arguments::ProfileArguments profiling;
  arguments::PlanArguments planning;
  CLI::App* train = app.add_subcommand("train");
  CLI::App* test = app.add_subcommand("test");
  CLI::App* predict = app.add_subcommand("predict");
  CLI::App* generate = app.add_subcommand("generate");
  CLI::App* profile = app.add_subcommand("profile");
  CLI::App* plan = app.add_subcommand("plan");
  CLI::App* doctor = app.add_subcommand("doctor");
  doctor->allow_extras();  // the launcher handles -N
  std::filesystem::path doctor_report;
  arguments::add_report_option(*doctor, doctor_report);
  arguments::add_recipe_arguments(*train, recipe);
  arguments::add_test_arguments(*test, recipe);
  arguments::add_predict_arguments(*predict, prediction);
  arguments::add_generate_arguments(*generate, generation);
  arguments::add_profile_arguments(*profile, profiling);
  arguments::add_plan_arguments(*plan, planning);
  if (const auto ended = arguments::parse(app, argc, argv)) return *ended;
  return exit_code_of([&] {
    reuse_tensor_memory();
    if (train->parsed()) rank::run_recipe(recipe, Verb::train);
    if (test->parsed()) rank::run_recipe(recipe, Verb::test);
    if (predict->parsed()) rank::predict(prediction);
    if (generate->parsed()) rank::generate(generation);
    if (profile->parsed()) rank::profile(profiling);
    if (plan->parsed()) rank::plan(planning);
    if (doctor->parsed()) rank::doctor(doctor_report);
  });
}

}  // namespace stretto::rank
