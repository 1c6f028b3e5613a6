#include "stretto/launch/launch.h"

#include <memory>

#include "stretto/cli/verbs.h"
#include "stretto/command/checks.h"
#include "stretto/command/launch_arguments.h"
#include "stretto/config/strategy.h"

namespace stretto::cli {
namespace {

struct LaunchVerb {
  command::LaunchArguments common;
  std::string log_folder;
  std::string strategy;
  std::vector<std::string> never;
};

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

}  // namespace

void add_launch(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand("launch", "Run a program on several ranks, on one or several hosts");
  auto arguments = std::make_shared<LaunchVerb>();
  command::add_launch_arguments(*verb, arguments->common);
  verb->add_option("--log-dir,--log_dir", arguments->log_folder,
                   "Folder for training_<rank>.log, one file per rank")
      ->type_name("DIR")
      ->check(command::a_name);

  // Of torchrun: any program is run, and one host needs no rendezvous.
  verb->add_flag("--no-python,--no_python,--standalone")->group("");

  verb->add_option(
          "--strat,--strategy", arguments->strategy,
          "Strategy for the program's Lite or recipe, such as deepspeed-2-bf16 (`stretto strats` lists them)")
      ->type_name("NAME")
      ->check(command::a_name);

  // Everything from the first word that is not an option belongs to the program. CLI11 ends a verb at "--" unless the
  // verb still expects a positional argument; "program" is one that accepts no value.
  verb->prefix_command();
  verb->validate_positionals();
  verb->add_option("program", arguments->never, "The program and its arguments, preferably after --")
      ->type_name(" ")
      ->check([](const std::string&) { return std::string("never"); });

  verb->callback([arguments, verb, &exit_code] {
    launch::LaunchOptions options{.command = launched_command(*verb), .log_folder = arguments->log_folder};
    if (!arguments->log_folder.empty()) options.flight_record = options.log_folder / "flight_record.json";
    command::apply(arguments->common, options);
    if (!arguments->strategy.empty()) set_launched_strategy(parse_strategy(arguments->strategy));
    exit_code = launch::run(options);
  });
}

}  // namespace stretto::cli
