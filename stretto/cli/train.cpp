#include <memory>

#include "stretto/cli/launch_recipe.h"
#include "stretto/cli/rank_program.h"
#include "stretto/cli/verbs.h"
#include "stretto/cluster/environment.h"

namespace stretto::cli {
namespace {

// Everything that can be refused is refused here, before a process is started. Under torchrun or another
// launcher this process is one of the ranks and becomes it.
int run_recipe(const RecipeArguments& arguments, Verb verb) {
  const Recipe recipe = load_checked(arguments, verb);
  if (cluster::read_rank_info().launched) become_rank_program();
  return launch_recipe(arguments, recipe, verb, rank_command());
}

void add_recipe_verb(CLI::App& app, int& exit_code, const char* name, const char* help, Verb verb) {
  CLI::App* sub = app.add_subcommand(name, help);
  auto arguments = std::make_shared<RecipeArguments>();
  add_recipe_arguments(*sub, *arguments);
  sub->callback([arguments, verb, &exit_code] { exit_code = run_recipe(*arguments, verb); });
}

}  // namespace

void add_train(CLI::App& app, int& exit_code) {
  add_recipe_verb(app, exit_code, "train", "Train what a recipe describes", Verb::train);
}

void add_test(CLI::App& app, int& exit_code) {
  add_recipe_verb(app, exit_code, "test", "Score a recipe's test data with the model it trained", Verb::test);
}

}  // namespace stretto::cli
