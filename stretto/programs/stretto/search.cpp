#include <algorithm>
#include <limits>
#include <memory>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/strings.h"
#include "stretto/cluster/managers.h"
#include "stretto/metrics/direction.h"
#include "stretto/programs/arguments/checks.h"
#include "stretto/programs/arguments/launch_recipe.h"
#include "stretto/programs/stretto/child_process.h"
#include "stretto/programs/stretto/rank_program.h"
#include "stretto/programs/stretto/search_folder.h"
#include "stretto/programs/stretto/search_results.h"
#include "stretto/programs/stretto/search_space.h"
#include "stretto/programs/stretto/search_trials.h"
#include "stretto/programs/stretto/verbs.h"

namespace stretto::cli {
namespace {

struct SearchArguments {
  arguments::RecipeArguments recipe;
  int64_t trials = 0;
  int64_t halve_after = 0;  // 0: all trials train to the end
  uint64_t seed = 42;
  std::vector<std::string> parameters;
  std::filesystem::path output = "runs/search";
};

SearchMetric metric_of(const Recipe& recipe) {
  if (recipe.evaluate.every.never())
    throw ConfigError(
        "{}: a search compares trials by their evaluations, but the recipe has none; set data.validation or evaluate.every",
        recipe.origins.label("evaluate.every"));
  std::string name = recipe.checkpoint.monitor.value_or("loss");
  if (name.starts_with("eval_")) name.erase(0, 5);
  if (name == "valid_loss" || name == "val_loss") name = "loss";
  if (name == "train_loss")
    throw ConfigError("{}: a search compares trials by a metric of their evaluations; set another one",
                      recipe.origins.label("checkpoint.monitor"));
  const MetricMode mode = recipe.checkpoint.mode;
  if (mode != MetricMode::automatic) return {name, mode == MetricMode::max};
  try {
    return {name, metrics::direction(name) == metrics::Direction::higher};
  } catch (const ConfigError& error) {
    throw ConfigError("{}: {}", recipe.origins.label("checkpoint.monitor"), error.what());
  }
}

bool sets_itself(std::string_view name) {
  return name == "output" || name == "resume" || name == "training.steps_this_run" ||
         name == "evaluate.first_by";
}

// Runs the trials of a search, each in a separate process like `stretto train`. All decisions follow from the
// folders of the trials, so the same command continues an interrupted search.
class Search {
 public:
  explicit Search(const SearchArguments& arguments)
      : arguments_(arguments), folder_(arguments.output, arguments.trials) {
    check_settings();
    for (const std::string& text : arguments.parameters) add_parameter(text);
    folder_.check();
    for (int64_t trial = 1; trial <= arguments.trials; ++trial) check_trial(trial);
    folder_.claim({{"recipe", arguments.recipe.recipe.string()},
                   {"settings", arguments.recipe.overrides},
                   {"trials", arguments.trials},
                   {"halve_after", arguments.halve_after},
                   {"seed", arguments.seed},
                   {"parameters", arguments.parameters},
                   {"metric", metric_.name}});
  }

  // Returns the exit code.
  int run() {
    std::vector<int64_t> trials;
    for (int64_t trial = 1; trial <= arguments_.trials; ++trial) trials.push_back(trial);
    for (int64_t until = arguments_.halve_after; until > 0 && trials.size() > 1; until *= 2) {
      if (!all_reach(trials, until)) return code_;
      trials = better_half(trials, scores_of(trials, until), metric_.larger_is_better);
    }
    if (!all_reach(trials, no_limit)) return code_;
    report_search(folder_, rank_trials(folder_, parameters_, arguments_.seed, metric_));
    return 0;
  }

 private:
  // "optimizer.lr=0.000213"
  std::vector<std::string> settings_of(int64_t trial) const {
    std::vector<std::string> settings;
    for (const SearchParameter& parameter : parameters_)
      settings.push_back(parameter.name + "=" + parameter.draw(arguments_.seed, trial));
    return settings;
  }

  arguments::RecipeArguments arguments_of(int64_t trial, int64_t steps) const {
    arguments::RecipeArguments arguments = arguments_.recipe;
    for (const std::string& setting : settings_of(trial)) arguments.overrides.push_back(setting);
    arguments.overrides.push_back("output=" + folder_.of(trial).string());
    arguments.overrides.emplace_back("resume=auto");
    if (steps != no_limit) {
      arguments.overrides.push_back(fmt::format("training.steps_this_run={}", steps));
      arguments.overrides.push_back(fmt::format("evaluate.first_by={}", arguments_.halve_after));
    }
    arguments.launch.stop_exit_code = exit_stopped;
    return arguments;
  }

  // Messages name the parameter instead of the setting that was drawn from it.
  void check_trial(int64_t trial) {
    try {
      const Recipe recipe = arguments::load_checked(arguments_of(trial, no_limit), Verb::train);
      metric_ = metric_of(recipe);
      check_recipe(recipe);
    } catch (const ConfigError& error) {
      const std::string message = error.what();
      for (size_t i = 0; i < parameters_.size(); ++i) {
        const std::string drawn = "--set " + settings_of(trial)[i];
        if (message.starts_with(drawn))
          throw ConfigError("--param {}: in {}{}", arguments_.parameters[i], folder_.name_of(trial),
                            message.substr(drawn.size()));
      }
      throw;
    }
  }

  void check_settings() const {
    for (const std::string& setting : arguments_.recipe.overrides) {
      const std::string name = setting.substr(0, setting.find('='));
      if (sets_itself(name))
        throw ConfigError("--set {}: a search sets {} itself for each trial; remove it", setting, name);
    }
  }

  void add_parameter(const std::string& text) {
    SearchParameter parameter = parse_search_parameter(text);
    const std::string& name = parameter.name;
    const auto refuse = [&](const std::string& why) { throw ConfigError("--param {}: {}", text, why); };
    if (sets_itself(name)) refuse(fmt::format("a search sets {} itself for each trial", name));
    if (name == "checkpoint.monitor" || name == "checkpoint.mode")
      refuse("trials are compared by one metric; set it for all of them with --set");
    if (std::ranges::find(parameters_, name, &SearchParameter::name) != parameters_.end())
      refuse(fmt::format("{} is given twice; remove one", name));
    for (const std::string& setting : arguments_.recipe.overrides) {
      if (setting.starts_with(name + "="))
        refuse(fmt::format("{} is set for all trials by --set {}; remove one", name, setting));
    }
    parameters_.push_back(std::move(parameter));
  }

  void check_recipe(const Recipe& recipe) const {
    if (recipe.training.fast_dev_run) {
      throw ConfigError("{}: a search compares whole runs; remove it",
                        recipe.origins.label("training.fast_dev_run"));
    }
    const Interval& every = recipe.evaluate.every;
    if (arguments_.halve_after == 0) return;
    if (every.unit() == Interval::Unit::seconds) {
      throw ConfigError(
          "{}: with --halve-after, trials are compared after equal steps; expected steps (500) or epochs (1ep)",
          recipe.origins.label("evaluate.every"));
    }
    // Steps of epochs are known when the data have been read: evaluate.first_by.
    if (every.in(Interval::Unit::steps) > static_cast<double>(arguments_.halve_after)) {
      throw ConfigError(
          "--halve-after {}: the first evaluation follows step {}, because {} is {}; expected at least {}",
          arguments_.halve_after, every.count(), recipe.origins.mention("evaluate.every"), every.text(),
          every.count());
    }
  }

  // Trains the trials until each has taken `until` steps, or all of its steps. Returns false if the search
  // must stop, with code_.
  bool all_reach(const std::vector<int64_t>& trials, int64_t until) {
    for (const int64_t trial : trials) {
      const TrialState state = read_trial(folder_.of(trial), metric_, until);
      if (state.finished || state.steps >= until || folder_.has_failed(trial)) continue;
      if (!train(trial, until == no_limit ? no_limit : until - state.steps)) return false;
    }
    return true;
  }

  // Returns false if the search must stop.
  bool train(int64_t trial, int64_t steps) {
    log::info("search     {} of {}: {}{}", folder_.name_of(trial), arguments_.trials,
              fmt::join(settings_of(trial), " "), steps == no_limit ? "" : ", " + counted(steps, "step"));
    const ChildEnd end = run_in_child([&] {
      const arguments::RecipeArguments arguments = arguments_of(trial, steps);
      Recipe recipe = arguments::load_checked(arguments, Verb::train);
      if (steps != no_limit)
        recipe.origins.places["evaluate.first_by"] = fmt::format("--halve-after {}", arguments_.halve_after);
      std::vector<std::string> words = {"train", arguments.recipe.string()};
      words.insert(words.end(), arguments.overrides.begin(), arguments.overrides.end());
      return arguments::launch_recipe(arguments, recipe, Verb::train, rank_command(words));
    });
    if (end.end_request != 0) {
      log::info("search     stopped; the same command continues it");
      code_ = end.exit_code == 0 || end.exit_code == exit_stopped ? 0 : end.exit_code;
      return false;
    }
    if (end.exit_code == exit_refused) {
      code_ = exit_refused;
      folder_.release();
      return false;
    }
    if (end.exit_code == 0) return true;
    log::warning("{} has failed with exit code {}; the search continues without it", folder_.name_of(trial),
                 end.exit_code);
    folder_.add_failure(trial, end.exit_code);
    return true;
  }

  std::vector<std::optional<double>> scores_of(const std::vector<int64_t>& trials, int64_t until) const {
    std::vector<std::optional<double>> scores;
    for (const int64_t trial : trials) {
      scores.push_back(folder_.has_failed(trial) ? std::nullopt
                                                 : read_trial(folder_.of(trial), metric_, until).best);
      if (scores.back() || folder_.has_failed(trial)) continue;
      throw ConfigError(
          "--halve-after {}: {} was not evaluated in its first {}; set it to at least the steps between evaluations (evaluate.every)",
          arguments_.halve_after, folder_.name_of(trial), counted(until, "step"));
    }
    return scores;
  }

  const SearchArguments& arguments_;
  SearchFolder folder_;
  std::vector<SearchParameter> parameters_;
  SearchMetric metric_;
  int code_ = 0;
};

int search(SearchArguments& arguments) {
  if (cluster::is_rank())
    throw ConfigError(
        "search: this process is a rank of another launcher (torchrun, srun, mpirun), but search starts the ranks of each trial; start it once, with -N");
  const arguments::HostArguments& hosts = arguments.recipe.launch.hosts;
  if (hosts.nodes > 1 || !hosts.hosts.empty() || !hosts.hostfile.empty())
    throw ConfigError("search: trials run on one host; remove --nodes, --hosts and --hostfile");
  arguments::apply_foreign_launch(arguments.recipe);
  return Search(arguments).run();
}

}  // namespace

void add_search(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand(
      "search", "Train by a recipe with several values of its settings, and compare the results");
  auto arguments = std::make_shared<SearchArguments>();
  arguments::add_recipe_arguments(*verb, arguments->recipe);
  verb->add_option("--trials", arguments->trials, "Number of runs")
      ->required()
      ->type_name("N")
      ->check(arguments::whole_number_from(1, 10'000));
  verb->add_option(
          "--param", arguments->parameters,
          "A setting and its distribution: NAME=log:LOW:HIGH (its logarithm is uniform), NAME=uniform:LOW:HIGH, NAME=int:LOW:HIGH or NAME=choice:A,B,C; repeatable")
      ->required()
      ->type_name("NAME=DISTRIBUTION")
      ->allow_extra_args(false);
  verb->add_option(
          "--halve-after", arguments->halve_after,
          "Successive halving: after so many steps the better half of the trials continues, after twice as many the better half of these, and so on (default: all train to the end)")
      ->type_name("STEPS")
      ->check(arguments::whole_number_from(1, 1'000'000'000));
  verb->add_option("--search-seed", arguments->seed, "The values that are drawn depend on it (default: 42)")
      ->type_name("SEED")
      ->check(arguments::whole_number_from(0, std::numeric_limits<int64_t>::max()));
  verb->add_option("--output", arguments->output, "The folder of the trials (default: runs/search)")
      ->type_name("FOLDER")
      ->check(arguments::a_name);
  verb->callback([arguments, &exit_code] { exit_code = search(*arguments); });
}

}  // namespace stretto::cli
