#include <memory>

#include <unistd.h>

#include "stretto/base/error.h"
#include "stretto/launch/launch.h"
#include "stretto/programs/arguments/generate_arguments.h"
#include "stretto/programs/stretto/rank_program.h"
#include "stretto/programs/stretto/served_model.h"
#include "stretto/programs/stretto/verbs.h"

namespace stretto::cli {

namespace {

// Prompts may arrive at any time, and a text takes as long as it takes, so no rank is considered to hang.
int launch_ranks(const arguments::GenerateArguments& arguments) {
  const bool reads_input = arguments.texts.empty() && arguments.input == "-";
  if (reads_input && ::isatty(STDIN_FILENO) == 1) {
    throw ConfigError(
        "-N {}: ranks cannot read prompts from the terminal; give --text or --input, or pipe the prompts",
        arguments.ranks);
  }
  launch::LaunchOptions options{.command = rank_command(), .ranks = arguments.ranks};
  options.own_program = true;
  options.hang_timeout = std::chrono::milliseconds(0);
  options.collective_timeout = std::chrono::seconds(0);
  options.output.reader_returns = true;
  return launch::run(options);
}

}  // namespace

void add_generate(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand("generate", "Continue texts with a language model");
  auto arguments = std::make_shared<arguments::GenerateArguments>();
  arguments::add_generate_arguments(*verb, *arguments);
  verb->callback([arguments, &exit_code] {
    require_model_folder(arguments->model);
    require_input_file(arguments->input);
    if (arguments->ranks == 1) become_rank_program();
    exit_code = launch_ranks(*arguments);
  });
}

}  // namespace stretto::cli
