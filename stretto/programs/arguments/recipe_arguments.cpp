#include "stretto/programs/arguments/recipe_arguments.h"

#include <algorithm>
#include <memory>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/compat/foreign.h"
#include "stretto/config/evaluation.h"
#include "stretto/programs/arguments/checks.h"
#include "stretto/settings/variables.h"

namespace stretto::arguments {
namespace {

// Adds --set KEY=VALUE and positional KEY=VALUE; both are appended to `overrides` in the order of the command
// line.
void add_overrides(CLI::App& verb, std::vector<std::string>& overrides) {
  struct Given {
    std::vector<std::string> with_set, without;
  };
  const auto given = std::make_shared<Given>();
  const CLI::Option* set =
      verb.add_option("--set", given->with_set, "The same as an option, as in --set optimizer.lr=3e-5")
          ->type_name("KEY=VALUE")
          ->allow_extra_args(false);
  const CLI::Option* settings =
      verb.add_option("settings", given->without,
                      "Override settings of the recipe, as in optimizer.lr=3e-5 training.epochs=2")
          ->type_name("KEY=VALUE");
  verb.parse_complete_callback([given, set, settings, &verb, &overrides] {
    overrides.clear();
    size_t with_set = 0, without = 0;
    for (const CLI::Option* option : verb.parse_order()) {
      if (option == set) overrides.push_back(given->with_set.at(with_set++));
      if (option == settings) overrides.push_back(given->without.at(without++));
    }
  });
}

// Reads the settings of the files of other tools.
compat::ForeignConfig read_foreign(const RecipeArguments& arguments) {
  compat::ForeignConfig all;
  const auto add = [&](const std::filesystem::path& file,
                       compat::ForeignConfig (*read)(const std::filesystem::path&)) {
    if (file.empty()) return;
    const compat::ForeignConfig one = read(file);
    all.settings.insert(all.settings.end(), one.settings.begin(), one.settings.end());
    all.notes.insert(all.notes.end(), one.notes.begin(), one.notes.end());
    if (one.hosts.nodes) all.hosts = one.hosts;
    if (!one.ranks) return;
    all.ranks = one.ranks;
    all.ranks_place = one.ranks_place;
  };
  add(arguments.accelerate, compat::read_accelerate);
  add(arguments.deepspeed, compat::read_deepspeed);
  add(arguments.parameters, compat::read_universal_trainer);
  add(arguments.hps, compat::read_hps);
  return all;
}

// The settings that the verb does not read. A user's program may read all of them.
std::vector<std::string> unread_settings(Verb verb) {
  if (verb == Verb::train) return {"data.test"};
  if (verb == Verb::test) return {"data.train", "data.mixture", "data.validation"};
  return {};
}

// Loads the recipe. A setting that the verb does not read is ignored if it refers to an unset variable.
Recipe load_without_unread(const RecipeArguments& arguments, std::vector<std::string> overrides, Verb verb) {
  const compat::ForeignConfig foreign = read_foreign(arguments);
  const std::vector<std::string> unread = unread_settings(verb);
  while (true) {
    try {
      return load_recipe(arguments.recipe, overrides, arguments.program, foreign);
    } catch (const settings::UnsetVariableError& error) {
      if (std::ranges::find(unread, error.setting()) == unread.end()) throw;
      overrides.push_back(error.setting() + "=null");
    }
  }
}

// Like load_without_unread, with the flags of a translated recipe in place of its lines in messages.
Recipe load_with_flags(const RecipeArguments& arguments, std::vector<std::string> overrides, Verb verb) {
  if (arguments.flags.empty()) return load_without_unread(arguments, std::move(overrides), verb);
  const std::string file = arguments.recipe.string();
  try {
    Recipe recipe = load_without_unread(arguments, std::move(overrides), verb);
    for (auto& [setting, place] : recipe.origins.places) place = arguments.flags.in(place, file);
    return recipe;
  } catch (const ConfigError& error) {
    throw ConfigError("{}", arguments.flags.in(error.what(), file));
  }
}

}  // namespace

// The command line takes precedence, except for the number of hosts, which must agree.
static void apply_foreign_hosts(const compat::ForeignConfig::Hosts& foreign, HostArguments& hosts) {
  if (foreign.nodes.value_or(1) == 1) return;
  if (hosts.nodes != 0 && hosts.nodes != *foreign.nodes)
    throw ConfigError("{}: {} contradicts --nodes {}; remove one of them", foreign.place, *foreign.nodes,
                      hosts.nodes);
  hosts.nodes = static_cast<int>(*foreign.nodes);
  if (!hosts.node_rank && foreign.node_rank) hosts.node_rank = static_cast<int>(*foreign.node_rank);
  if (hosts.rendezvous.empty() && hosts.master_addr.empty())
    hosts.master_addr = foreign.master_addr.value_or("");
  if (hosts.rendezvous.empty() && hosts.master_port == 0)
    hosts.master_port = static_cast<int>(foreign.master_port.value_or(0));
}

void apply_foreign_launch(RecipeArguments& arguments) {
  const compat::ForeignConfig foreign = read_foreign(arguments);
  for (const std::string& note : foreign.notes) log::info("{}", note);
  apply_foreign_hosts(foreign.hosts, arguments.launch.hosts);
  if (!foreign.ranks) return;
  const auto ranks = static_cast<int>(*foreign.ranks);
  if (arguments.launch.ranks == 0) arguments.launch.ranks = ranks;
  if (arguments.launch.ranks == ranks) return;
  throw ConfigError("{}: {} contradicts -N {}; remove one of them", foreign.ranks_place, ranks,
                    arguments.launch.ranks);
}

void add_recipe_arguments(CLI::App& verb, RecipeArguments& arguments) {
  verb.add_option("recipe", arguments.recipe, "The recipe, a YAML file")->required()->type_name("FILE");
  add_overrides(verb, arguments.overrides);
  verb.add_option("--strat,--strategy", arguments.strategy, "Short for --set training.strategy=NAME")
      ->type_name("NAME")
      ->check(a_name);
  verb.add_option("--deepspeed", arguments.deepspeed,
                  "Settings from a DeepSpeed configuration, ds_config.json")
      ->type_name("FILE")
      ->check(a_name);
  verb.add_option("--accelerate", arguments.accelerate,
                  "Settings from the file that `accelerate config` writes")
      ->type_name("FILE")
      ->check(a_name);
  verb.add_option("--parameters", arguments.parameters,
                  "Settings from the parameters.yml of pytorch_universal_trainer")
      ->type_name("FILE")
      ->check(a_name);
  verb.add_option("--hps", arguments.hps, "Settings from the hps_config.yaml of AcceleratorModule (accmt)")
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
  if (status.type() == std::filesystem::file_type::not_found) {
    throw ConfigError(
        "{}: there is no such file; expected the recipe to {}, a YAML file (docs/guide/recipes.md)",
        arguments.recipe.string(), verb == Verb::test ? "test" : "train");
  }
  if (std::filesystem::is_directory(status)) {
    throw ConfigError("{}: it is a folder; expected a recipe, a YAML file", arguments.recipe.string());
  }
  std::vector<std::string> overrides = arguments.overrides;
  if (!arguments.strategy.empty()) overrides.push_back("training.strategy=" + arguments.strategy);
  if (arguments.allow_nonfinite) overrides.emplace_back("checkpoint.allow_nonfinite=true");
  Recipe recipe = load_with_flags(arguments, std::move(overrides), verb);
  if (verb == Verb::train) resolve_evaluation(recipe);
  check_recipe(recipe, verb);
  return recipe;
}

}  // namespace stretto::arguments
