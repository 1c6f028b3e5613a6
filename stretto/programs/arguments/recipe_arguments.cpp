#include "stretto/programs/arguments/recipe_arguments.h"

#include <algorithm>
#include <memory>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/cluster/managers.h"
#include "stretto/compat/foreign.h"
#include "stretto/config/evaluation.h"
#include "stretto/programs/arguments/checks.h"
#include "stretto/settings/variables.h"

namespace stretto::arguments {
namespace {

// Whether a word is KEY=VALUE and not the name of a file.
bool is_setting(const std::string& word) {
  const size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0) return false;
  const bool is_key = word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_.") == equals;
  std::error_code failed;
  return is_key && !std::filesystem::exists(word, failed);
}

// Adds the recipe, --set KEY=VALUE and positional KEY=VALUE, which are both appended to `overrides` in the
// order of the command line. The recipe may be omitted if there are files of other tools; the first word is
// then a setting, too.
void add_recipe_and_overrides(CLI::App& verb, RecipeArguments& arguments) {
  struct Given {
    std::vector<std::string> with_set, without;
  };
  const auto given = std::make_shared<Given>();
  const CLI::Option* recipe =
      verb.add_option("recipe", arguments.recipe,
                      "The recipe, a YAML file; or none, if a file of another tool says enough")
          ->type_name("FILE");
  const CLI::Option* set =
      verb.add_option("--set", given->with_set, "The same as an option, as in --set optimizer.lr=3e-5")
          ->type_name("KEY=VALUE")
          ->allow_extra_args(false);
  const CLI::Option* settings =
      verb.add_option("settings", given->without,
                      "Override settings of the recipe, as in optimizer.lr=3e-5 training.epochs=2")
          ->type_name("KEY=VALUE");
  verb.parse_complete_callback([given, recipe, set, settings, &verb, &arguments] {
    arguments.overrides.clear();
    size_t with_set = 0, without = 0;
    for (const CLI::Option* option : verb.parse_order()) {
      if (option == set) arguments.overrides.push_back(given->with_set.at(with_set++));
      if (option == settings) arguments.overrides.push_back(given->without.at(without++));
      if (option != recipe || !is_setting(arguments.recipe)) continue;
      arguments.overrides.push_back(arguments.recipe);
      arguments.recipe.clear();
    }
    if (arguments.recipe.empty() && !arguments.files.any()) throw CLI::RequiredError("recipe");
  });
}

// The settings that the verb does not read. A user's program may read all of them.
std::vector<std::string> unread_settings(Verb verb) {
  if (verb == Verb::train) return {"data.test"};
  if (verb == Verb::test) return {"data.train", "data.mixture", "data.validation"};
  return {};
}

// A setting for which a flag is short: as an override, and as its user has written it.
struct ShortFlag {
  std::string setting, written;
};

std::vector<ShortFlag> short_flags(const RecipeArguments& arguments) {
  std::vector<ShortFlag> flags;
  if (!arguments.strategy.empty())
    flags.push_back({"training.strategy=" + arguments.strategy, "--strategy " + arguments.strategy});
  if (arguments.tp > 0) {
    flags.push_back({fmt::format("training.mesh.tp={}", arguments.tp), fmt::format("--tp {}", arguments.tp)});
  }
  if (arguments.sequence_parallel)
    flags.push_back({"training.mesh.sequence_parallel=true", "--sequence-parallel"});
  if (arguments.allow_nonfinite) flags.push_back({"checkpoint.allow_nonfinite=true", "--allow-nonfinite"});
  return flags;
}

// `text` with flags as they were written.
std::string with_flags(std::string text, const std::vector<ShortFlag>& flags) {
  for (const auto& [setting, written] : flags) {
    const std::string place = "--set " + setting;
    for (size_t at = text.find(place); at != std::string::npos; at = text.find(place, at + written.size()))
      text.replace(at, place.size(), written);
  }
  return text;
}

// Loads the recipe. A setting that the verb does not read is ignored if it refers to an unset variable.
Recipe load_without_unread(const RecipeArguments& arguments, std::vector<std::string> overrides, Verb verb) {
  const compat::ForeignConfig foreign = compat::read_foreign(arguments.files);
  const std::vector<std::string> unread = unread_settings(verb);
  while (true) {
    try {
      Recipe recipe = load_recipe(arguments.recipe, overrides, arguments.program, foreign);
      if (arguments.recipe.empty()) compat::require_enough(recipe, foreign, verb);
      return recipe;
    } catch (const settings::UnsetVariableError& error) {
      if (std::ranges::find(unread, error.setting()) == unread.end()) throw;
      overrides.push_back(error.setting() + "=null");
    }
  }
}

// Like load_without_unread, with flags in place of the settings, and of the lines of a translated recipe, for
// which they stand in messages.
Recipe load_with_flags(const RecipeArguments& arguments, std::vector<std::string> overrides, Verb verb,
                       const std::vector<ShortFlag>& flags) {
  const auto written = [&](const std::string& text) {
    const std::string of_lines =
        arguments.flags.empty() ? text : arguments.flags.in(text, arguments.recipe.string());
    return with_flags(of_lines, flags);
  };
  if (arguments.flags.empty() && flags.empty())
    return load_without_unread(arguments, std::move(overrides), verb);
  try {
    Recipe recipe = load_without_unread(arguments, std::move(overrides), verb);
    for (auto& [setting, place] : recipe.origins.places) place = written(place);
    return recipe;
  } catch (const ConfigError& error) {
    throw ConfigError("{}", written(error.what()));
  }
}

}  // namespace

void apply_foreign_launch(RecipeArguments& arguments) {
  apply_foreign_launch(compat::read_foreign(arguments.files), arguments.launch);
}

Verb wanted_verb(const RecipeArguments& arguments, Verb verb) {
  if (verb == Verb::test || arguments.files.parameters.empty()) return verb;
  const std::string place = compat::read_universal_trainer(arguments.files.parameters).test_place;
  if (place.empty()) return verb;
  log::info("{}: \"test\": testing the trained model, as `stretto test` does", place);
  return Verb::test;
}

void add_recipe_arguments(CLI::App& verb, RecipeArguments& arguments) {
  add_recipe_and_overrides(verb, arguments);
  verb.add_option("--strat,--strategy", arguments.strategy, "Short for --set training.strategy=NAME")
      ->type_name("NAME")
      ->check(a_name);
  verb.add_option("--tp", arguments.tp,
                  "Number of ranks among which each layer is divided: short for --set training.mesh.tp=N")
      ->type_name("N")
      ->check(whole_number_from(1, 1'000'000));
  verb.add_flag("--sequence-parallel", arguments.sequence_parallel,
                "Divide norms, dropout and residuals among the ranks of --tp, too: short for --set "
                "training.mesh.sequence_parallel=true");
  add_foreign_arguments(verb, arguments.files);
  verb.add_option("--hps", arguments.files.hps,
                  "Settings from the hps_config.yaml of AcceleratorModule (accmt)")
      ->type_name("FILE")
      ->check(a_name);
  add_launch_arguments(verb, arguments.launch);
  verb.add_flag("--oversubscribe", arguments.launch.oversubscribe, "Start more ranks than memory can hold");
  verb.set_help_all_flag("--help-all", "Print this help and every setting of a recipe, and exit");
  verb.footer([&verb, &arguments] {
    if (verb.get_help_all_ptr()->count() > 0)
      return "Settings of a recipe, by section:\n\n" + recipe_help(arguments.program);
    return "Sections of a recipe (--help-all prints their settings):\n" + recipe_sections(arguments.program);
  });
}

void add_test_arguments(CLI::App& verb, RecipeArguments& arguments) {
  add_recipe_arguments(verb, arguments);
  verb.add_flag("--allow-nonfinite", arguments.allow_nonfinite,
                "Test a model even if its weights or loss are NaN or infinity: short for --set "
                "checkpoint.allow_nonfinite=true");
}

Recipe load_checked(const RecipeArguments& arguments, Verb verb) {
  std::error_code failed;
  const auto status = std::filesystem::status(arguments.recipe, failed);
  if (!arguments.recipe.empty() && status.type() == std::filesystem::file_type::not_found) {
    throw ConfigError(
        "{}: there is no such file; expected the recipe to {}, a YAML file (docs/guide/recipes.md)",
        arguments.recipe.string(), verb == Verb::test ? "test" : "train");
  }
  if (std::filesystem::is_directory(status)) {
    throw ConfigError("{}: it is a folder; expected a recipe, a YAML file", arguments.recipe.string());
  }
  const std::string option = compat::option_for_file(arguments.recipe);
  if (!option.empty() && arguments.program.empty()) {
    throw ConfigError("{}: this is a file of another tool, not a recipe; pass it with {}",
                      arguments.recipe.string(), option);
  }
  const std::vector<ShortFlag> flags = short_flags(arguments);
  std::vector<std::string> overrides = arguments.overrides;
  for (const ShortFlag& flag : flags) overrides.push_back(flag.setting);
  Recipe recipe = load_with_flags(arguments, std::move(overrides), verb, flags);
  if (verb == Verb::train) resolve_evaluation(recipe);
  check_recipe(recipe, verb);
  if (!cluster::is_rank()) {
    for (const std::string& line : recipe.remarks.lines) log::info("{}", line);
  }
  return recipe;
}

}  // namespace stretto::arguments
