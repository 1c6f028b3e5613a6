#include <algorithm>
#include <limits>
#include <map>
#include <memory>

#include <nlohmann/json.hpp>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/json.h"
#include "stretto/base/log.h"
#include "stretto/base/strings.h"
#include "stretto/cluster/managers.h"
#include "stretto/metrics/direction.h"
#include "stretto/programs/arguments/checks.h"
#include "stretto/programs/arguments/launch_recipe.h"
#include "stretto/programs/stretto/child_process.h"
#include "stretto/programs/stretto/rank_program.h"
#include "stretto/programs/stretto/search_space.h"
#include "stretto/programs/stretto/search_trials.h"
#include "stretto/programs/stretto/table.h"
#include "stretto/programs/stretto/verbs.h"
#include "stretto/report/axis.h"
#include "stretto/report/page.h"
#include "stretto/report/search_section.h"

namespace stretto::cli {
namespace {

constexpr int64_t no_limit = std::numeric_limits<int64_t>::max();

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

// How messages name a member of a search's identity in search.json.
std::string argument_of(const std::string& member) {
  static const std::map<std::string, std::string> arguments = {
      {"recipe", "the recipe"},        {"settings", "the list of settings"},
      {"trials", "--trials"},          {"halve_after", "--halve-after"},
      {"seed", "--search-seed"},       {"parameters", "--param"},
      {"metric", "checkpoint.monitor"}};
  return arguments.at(member);
}

// "a.yaml", "4", "optimizer.lr=1, output=x"; "none" for an empty list and what is not set.
std::string argument_text(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null() || value == 0 || value.empty()) return "none";
  if (!value.is_array()) return value.dump();
  std::vector<std::string> texts;
  for (const nlohmann::json& item : value) texts.push_back(argument_text(item));
  return fmt::format("{}", fmt::join(texts, ", "));
}

// Runs the trials of a search, each in a separate process like `stretto train`. All decisions follow from the
// folders of the trials, so the same command continues an interrupted search.
class Search {
 public:
  explicit Search(const SearchArguments& arguments) : arguments_(arguments) {
    check_settings();
    for (const std::string& text : arguments.parameters) add_parameter(text);
    check_folder();
    for (int64_t trial = 1; trial <= arguments.trials; ++trial) check_trial(trial);
    claim_folder();
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
    report();
    return 0;
  }

 private:
  std::string name_of(int64_t trial) const {
    const size_t digits = std::max<size_t>(2, std::to_string(arguments_.trials).size());
    return fmt::format("trial-{:0{}}", trial, digits);
  }
  std::filesystem::path folder_of(int64_t trial) const { return arguments_.output / name_of(trial); }
  std::filesystem::path file() const { return arguments_.output / "search.json"; }

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
    arguments.overrides.push_back("output=" + folder_of(trial).string());
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
          throw ConfigError("--param {}: in {}{}", arguments_.parameters[i], name_of(trial),
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

  // Throws ConfigError for a path that is no folder for a search.
  void check_folder() const {
    const std::filesystem::path& folder = arguments_.output;
    std::error_code failed;
    if (std::filesystem::exists(file(), failed)) return;
    const auto refuse = [&](const char* what) {
      throw ConfigError("--output {}: it {}; expected the folder of a search, or one that does not exist yet",
                        folder.string(), what);
    };
    if (report::is_run(folder)) refuse("holds a run");
    if (std::filesystem::exists(folder / "config.json", failed)) refuse("is a model folder");
    if (std::filesystem::exists(folder, failed) && !std::filesystem::is_directory(folder, failed))
      refuse("is a file");
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

  // Throws ConfigError if the folder is that of a search with other arguments.
  void claim_folder() {
    nlohmann::json identity = {{"recipe", arguments_.recipe.recipe.string()},
                               {"settings", arguments_.recipe.overrides},
                               {"trials", arguments_.trials},
                               {"halve_after", arguments_.halve_after},
                               {"seed", arguments_.seed},
                               {"parameters", arguments_.parameters},
                               {"metric", metric_.name}};
    if (std::filesystem::exists(file())) {
      state_ = read_json(file());
      for (const auto& [name, value] : identity.items()) {
        if (state_["search"].contains(name) && state_["search"][name] == value) continue;
        throw ConfigError(
            "{} belongs to a search with other arguments: {} was {}, now {}; repeat them to continue it, or choose another folder with --output",
            arguments_.output.string(), argument_of(name),
            argument_text(state_["search"].value(name, nlohmann::json())), argument_text(value));
      }
      return;
    }
    make_folders(arguments_.output);
    state_ = {{"search", std::move(identity)}, {"failed", nlohmann::json::object()}};
    write_file_atomic(file(), state_.dump(2) + "\n");
  }

  // Leaves the folder to a search with other arguments if no trial has begun.
  void release_folder() const {
    for (int64_t trial = 1; trial <= arguments_.trials; ++trial)
      if (report::is_run(folder_of(trial))) return;
    std::filesystem::remove(file());
    std::error_code not_empty;
    std::filesystem::remove(arguments_.output, not_empty);
  }

  bool has_failed(int64_t trial) const { return state_["failed"].contains(name_of(trial)); }

  // Trains the trials until each has taken `until` steps, or all of its steps. Returns false if the search
  // must stop, with code_.
  bool all_reach(const std::vector<int64_t>& trials, int64_t until) {
    for (const int64_t trial : trials) {
      const TrialState state = read_trial(folder_of(trial), metric_, until);
      if (state.finished || state.steps >= until || has_failed(trial)) continue;
      if (!train(trial, until == no_limit ? no_limit : until - state.steps)) return false;
    }
    return true;
  }

  // Returns false if the search must stop.
  bool train(int64_t trial, int64_t steps) {
    log::info("search     {} of {}: {}{}", name_of(trial), arguments_.trials,
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
      release_folder();
      return false;
    }
    if (end.exit_code == 0) return true;
    log::warning("{} has failed with exit code {}; the search continues without it", name_of(trial),
                 end.exit_code);
    state_["failed"][name_of(trial)] = end.exit_code;
    write_file_atomic(file(), state_.dump(2) + "\n");
    return true;
  }

  std::vector<std::optional<double>> scores_of(const std::vector<int64_t>& trials, int64_t until) const {
    std::vector<std::optional<double>> scores;
    for (const int64_t trial : trials) {
      scores.push_back(has_failed(trial) ? std::nullopt : read_trial(folder_of(trial), metric_, until).best);
      if (scores.back() || has_failed(trial)) continue;
      throw ConfigError(
          "--halve-after {}: {} was not evaluated in its first {}; set it to at least the steps between evaluations (evaluate.every)",
          arguments_.halve_after, name_of(trial), counted(until, "step"));
    }
    return scores;
  }

  // All trials, the best first.
  std::vector<report::SearchedTrial> ranking() const {
    std::vector<report::SearchedTrial> trials;
    for (int64_t trial = 1; trial <= arguments_.trials; ++trial) {
      const TrialState state = read_trial(folder_of(trial), metric_, no_limit);
      report::SearchedTrial& row = trials.emplace_back();
      row.name = name_of(trial);
      for (const SearchParameter& parameter : parameters_)
        row.values.push_back(parameter.draw(arguments_.seed, trial));
      if (!has_failed(trial)) row.score = state.best;
      row.state = has_failed(trial) ? "failed"
                  : state.finished  ? "finished"
                                    : "stopped after " + counted(state.steps, "step");
    }
    std::ranges::stable_sort(trials, [&](const auto& a, const auto& b) {
      if (!a.score || !b.score) return a.score.has_value() && !b.score.has_value();
      return metric_.larger_is_better ? *a.score > *b.score : *a.score < *b.score;
    });
    return trials;
  }

  // Prints the table of the trials, and writes it to search.json and report.html.
  void report() {
    report::SearchResults results{.metric = metric_.name, .parameters = {}, .trials = ranking()};
    for (const SearchParameter& parameter : parameters_) {
      results.parameters.push_back({.name = parameter.name,
                                    .is_number = parameter.kind != SearchParameter::Kind::choice,
                                    .is_log = parameter.kind == SearchParameter::Kind::log});
    }
    std::vector<Cells> rows = {{"trial"}};
    for (const SearchParameter& parameter : parameters_) rows[0].push_back(parameter.name);
    rows[0].insert(rows[0].end(), {metric_.name, "state"});
    std::vector<report::RunData> runs;
    nlohmann::json table = nlohmann::json::array();
    for (const report::SearchedTrial& trial : results.trials) {
      Cells& row = rows.emplace_back(Cells{trial.name});
      row.insert(row.end(), trial.values.begin(), trial.values.end());
      row.insert(row.end(), {trial.score ? report::value_text(*trial.score) : "", trial.state});
      nlohmann::json settings = nlohmann::json::object();
      for (size_t i = 0; i < parameters_.size(); ++i) settings[parameters_[i].name] = trial.values[i];
      table.push_back({{"trial", trial.name},
                       {"settings", settings},
                       {metric_.name, trial.score ? nlohmann::json(*trial.score) : nlohmann::json()},
                       {"state", trial.state}});
      const auto folder = arguments_.output / trial.name;
      if (report::is_run(folder)) runs.push_back(report::read_run(folder));
    }
    state_["trials"] = table;
    write_file_atomic(file(), state_.dump(2) + "\n");
    cli::print_table(rows, /*numbers_right=*/true);
    if (!results.trials[0].score)
      throw ConfigError("all trials have failed; the messages above give the reasons");
    const auto page = arguments_.output / "report.html";
    write_file_atomic(page, report::html_page(runs, STRETTO_VERSION, report::search_section(results)));
    fmt::print("best model: {}\nreport: {}\n",
               (arguments_.output / results.trials[0].name / "model").string(), page.string());
  }

  const SearchArguments& arguments_;
  std::vector<SearchParameter> parameters_;
  SearchMetric metric_;
  nlohmann::json state_;  // search.json
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
