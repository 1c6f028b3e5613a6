#include "stretto/launch/launch.h"

#include <filesystem>
#include <memory>

#include <fmt/ranges.h>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/cluster/managers.h"
#include "stretto/compat/foreign.h"
#include "stretto/launch/process/command_line.h"
#include "stretto/programs/arguments/checks.h"
#include "stretto/programs/arguments/foreign_arguments.h"
#include "stretto/programs/arguments/launch_arguments.h"
#include "stretto/programs/stretto/slurm_script.h"
#include "stretto/programs/stretto/verbs.h"
#include "stretto/strategy/strategy.h"

namespace stretto::cli {
namespace {

struct LaunchVerb {
  arguments::LaunchArguments common;
  std::string log_folder;
  std::string strategy;
  compat::ForeignFiles files;
  std::vector<std::string> never;
  bool slurm_script = false;
};

// Whether a command starts its ranks itself.
bool runs_recipe(const std::vector<std::string>& command) {
  const bool is_stretto = std::filesystem::path(command[0]).filename() == "stretto";
  return is_stretto && command.size() > 1 && (command[1] == "train" || command[1] == "test");
}

// The given options for files of other tools, "--deepspeed ds.json".
std::string file_options(const compat::ForeignFiles& files) {
  std::string options;
  for (const auto& [option, file] : {std::pair("--accelerate", files.accelerate),
                                     {"--deepspeed", files.deepspeed},
                                     {"--parameters", files.parameters}})
    if (!file.empty()) options += fmt::format("{}{} {}", options.empty() ? "" : " ", option, file.string());
  return options;
}

// The strategy of files of other tools. A program with its own training loop uses nothing else of their
// settings.
Strategy foreign_strategy(const compat::ForeignConfig& foreign) {
  Strategy strategy;
  std::string left_out;
  for (const compat::ForeignSetting& setting : foreign.settings) {
    if (setting.name == "training.strategy") strategy.kind = parse_strategy(setting.value).kind;
    if (setting.name == "training.precision") strategy.precision = parse_precision(setting.value);
    const bool used = setting.name == "training.strategy" || setting.name == "training.precision";
    if (!used && !setting.implied) left_out += "\n  " + setting.place;
  }
  log::info("strategy   {}, from {}{}{}", strategy.name(), fmt::join(foreign.files, ", "),
            left_out.empty() ? "" : "; these settings are not applied:", left_out);
  return strategy;
}

// The strategy of the options; the files of other tools also determine ranks and hosts.
std::optional<Strategy> apply_strategy(LaunchVerb& arguments, const std::vector<std::string>& command) {
  if (!arguments.strategy.empty()) return parse_strategy(arguments.strategy);
  if (!arguments.files.any()) return std::nullopt;
  if (runs_recipe(command)) {
    const std::string options = file_options(arguments.files);
    throw ConfigError("{}: pass it to the recipe's verb instead: {} {} RECIPE {}",
                      options.substr(0, options.find(' ')), command[0], command[1], options);
  }
  compat::ForeignConfig foreign = compat::read_foreign(arguments.files);
  const Strategy strategy = foreign_strategy(foreign);
  foreign.notes.clear();  // of keys that do not matter to a recipe
  arguments::apply_foreign_launch(foreign, arguments.common);
  return strategy;
}

// Throws in a task of srun or mpirun, since each task would start a separate job.
void refuse_tasks_as_launchers() {
  const bool is_task = !cluster::process_environment("RANK") && cluster::is_rank();
  if (!is_task) return;
  const cluster::RankInfo info = cluster::read_rank_info();
  throw ConfigError(
      "launch: srun or mpirun has started {} tasks on this host, and each would start ranks; start one task per host (srun --ntasks-per-node=1), or the program itself {} times",
      info.local_world_size, info.world_size);
}

// The words after the options: the program and its arguments, optionally after "--".
std::vector<std::string> launched_command(const CLI::App& verb) {
  std::vector<std::string> command = verb.remaining();
  if (!command.empty() && command.front() == "--") {
    command.erase(command.begin());
  } else if (!command.empty() && command.front().starts_with('-')) {
    throw CLI::ExtrasError(verb.get_name(), {command.front()});
  }
  if (command.empty()) throw CLI::RequiredError("a program to launch");
  return command;
}

// The name of a job: "train" for "stretto train".
std::string job_name(const std::vector<std::string>& command) {
  return std::filesystem::path(command.size() > 1 && runs_recipe(command) ? command[1] : command[0])
      .filename();
}

// The given options that apply to the launcher of each node.
std::vector<std::string> options_of(const CLI::App& verb) {
  std::vector<std::string> words;
  for (const CLI::Option* option : verb.get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0 || name == "--slurm-script" || name == "--nodes" || name == "program") continue;
    words.push_back(option->check_sname("N") ? "-N" : "--" + option->get_lnames().front());
    if (option->get_items_expected_max() > 0) words.push_back(option->results().front());
  }
  return words;
}

void print_slurm_script(const CLI::App& verb, const LaunchVerb& arguments,
                        const std::vector<std::string>& command) {
  const arguments::HostArguments& hosts = arguments.common.hosts;
  if (!hosts.hosts.empty() || !hosts.hostfile.empty() || hosts.node_rank || !hosts.master_addr.empty() ||
      !hosts.rendezvous.empty())
    throw ConfigError("--slurm-script: Slurm names the hosts; pass their number with --nodes only");
  if (runs_recipe(command) && !arguments.log_folder.empty())
    throw ConfigError("--log-dir {}: {} keeps its logs in the recipe's output folder; remove it",
                      arguments.log_folder, command[1]);
  SlurmScript job{
      .name = job_name(command), .nodes = std::max(1, hosts.nodes), .ranks = arguments.common.ranks};
  const std::vector<std::string> options = options_of(verb);
  job.command = command;
  if (!runs_recipe(command)) {
    job.command = {launch::own_command().front(), "launch"};
    job.command.insert(job.command.end(), options.begin(), options.end());
    job.command.push_back("--");
    job.command.insert(job.command.end(), command.begin(), command.end());
  } else {
    job.command.insert(job.command.end(), options.begin(), options.end());
  }
  fmt::print("{}", slurm_script(job));
}

}  // namespace

void add_launch(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand("launch", "Run a program on several ranks, on one or several hosts");
  auto arguments = std::make_shared<LaunchVerb>();
  arguments::add_launch_arguments(*verb, arguments->common);
  verb->add_option("--log-dir,--log_dir", arguments->log_folder,
                   "Folder for training_<rank>.log, one file per rank")
      ->type_name("DIR")
      ->check(arguments::a_name);

  // Options of torchrun without an effect: any program is run, and a single host needs no rendezvous.
  verb->add_flag("--no-python,--no_python,--standalone")->group("");

  verb->add_option(
          "--strat,--strategy", arguments->strategy,
          "Strategy for the program's Lite or recipe, such as deepspeed-2-bf16 (`stretto strats` lists them)")
      ->type_name("NAME")
      ->check(arguments::a_name);
  arguments::add_foreign_arguments(*verb, arguments->files);
  for (const char* option : {"--deepspeed", "--accelerate", "--parameters"})
    verb->get_option(option)->excludes("--strat")->description(verb->get_option(option)->get_description() +
                                                               ": strategy, precision, ranks and hosts");

  // Everything from the first word that is not an option belongs to the program. CLI11 ends a verb at "--"
  // unless the verb still expects a positional argument; "program" is one that accepts no value.
  verb->prefix_command();
  verb->validate_positionals();
  verb->add_option("program", arguments->never, "The program and its arguments, preferably after --")
      ->type_name(" ")
      ->check([](const std::string&) { return std::string("never"); });

  verb->add_flag("--slurm-script", arguments->slurm_script,
                 "Print a batch script for Slurm that runs this job, and exit");

  verb->callback([arguments, verb, &exit_code] {
    if (arguments->slurm_script) return print_slurm_script(*verb, *arguments, launched_command(*verb));
    arguments::join_job(arguments->common);
    refuse_tasks_as_launchers();
    launch::LaunchOptions options{.command = launched_command(*verb), .log_folder = arguments->log_folder};
    if (!arguments->log_folder.empty()) options.flight_record = options.log_folder / "flight_record.json";
    if (const auto strategy = apply_strategy(*arguments, options.command)) set_launched_strategy(*strategy);
    arguments::apply(arguments->common, options);
    exit_code = launch::run(options);
  });
}

}  // namespace stretto::cli
