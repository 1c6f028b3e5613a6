#include <memory>

#include "stretto/cluster/managers.h"
#include "stretto/programs/arguments/launch_recipe.h"
#include "stretto/programs/stretto/rank_program.h"
#include "stretto/programs/stretto/verbs.h"

namespace stretto::cli {
namespace {

// Checks the recipe before any process is started. Under torchrun or another launcher this process is a rank
// and executes stretto-rank.
int run_recipe(arguments::RecipeArguments& arguments, Verb verb) {
  arguments::join_job(arguments.launch);
  const bool launched = cluster::is_rank();
  if (launched) arguments::note_ranks_of_launcher(arguments.launch);
  if (!launched) arguments::apply_foreign_launch(arguments);
  verb = arguments::wanted_verb(arguments, verb);
  const Recipe recipe = arguments::load_checked(arguments, verb);
  std::vector<std::string> command = rank_command();
  command.at(1) = verb == Verb::test ? "test" : "train";
  if (launched) become_rank_program(command);
  return arguments::launch_recipe(arguments, recipe, verb, std::move(command));
}

void add_recipe_verb(CLI::App& app, int& exit_code, const char* name, const char* help, Verb verb) {
  CLI::App* sub = app.add_subcommand(name, help);
  auto arguments = std::make_shared<arguments::RecipeArguments>();
  verb == Verb::test ? arguments::add_test_arguments(*sub, *arguments)
                     : arguments::add_recipe_arguments(*sub, *arguments);
  sub->callback([arguments, verb, &exit_code] { exit_code = run_recipe(*arguments, verb); });
}

}  // namespace

void add_train(CLI::App& app, int& exit_code) {
  add_recipe_verb(app, exit_code, "train", "Train a model by a recipe", Verb::train);
}

void add_test(CLI::App& app, int& exit_code) {
  add_recipe_verb(app, exit_code, "test", "Evaluate the trained model on a recipe's test data", Verb::test);
}

}  // namespace stretto::cli
