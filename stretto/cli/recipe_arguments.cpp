#include "stretto/cli/recipe_arguments.h"

#include "stretto/base/error.h"

namespace stretto::cli {

void add_recipe_arguments(CLI::App& verb, RecipeArguments& arguments) {
  verb.add_option("recipe", arguments.recipe, "The recipe, a YAML file")->required()->type_name("FILE");
  verb.add_option("--set", arguments.overrides,
                  "Override a setting, as in --set optimizer.lr=3e-5; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  verb.add_option("--strat,--strategy", arguments.strategy, "Short for --set training.strategy=NAME")
      ->type_name("NAME");
  add_launch_arguments(verb, arguments.launch);
  verb.add_flag("--oversubscribe", arguments.launch.oversubscribe, "Start more ranks than memory can hold");
  verb.footer("Settings of a recipe, by section:\n\n" + recipe_help());
}

Recipe load_checked(const RecipeArguments& arguments, Verb verb) {
  if (!std::filesystem::exists(arguments.recipe)) {
    throw ConfigError(
        "{}: there is no such file; the recipe to {} is expected, a YAML file as in docs/guide/recipes.md",
        arguments.recipe.string(), verb == Verb::test ? "test" : "train");
  }
  if (std::filesystem::is_directory(arguments.recipe)) {
    throw ConfigError("{}: it is a folder; the recipe, a YAML file, is expected", arguments.recipe.string());
  }
  std::vector<std::string> overrides = arguments.overrides;
  if (!arguments.strategy.empty()) overrides.push_back("training.strategy=" + arguments.strategy);
  Recipe recipe = load_recipe(arguments.recipe, overrides);
  check_recipe(recipe, verb);
  return recipe;
}

}  // namespace stretto::cli
