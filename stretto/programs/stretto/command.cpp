#include "stretto/programs/stretto/command.h"

#include <fmt/format.h>

#include "stretto/base/log.h"
#include "stretto/programs/arguments/failure.h"
#include "stretto/programs/arguments/parse.h"
#include "stretto/programs/arguments/standard_output.h"
#include "stretto/programs/stretto/known_verb.h"
#include "stretto/programs/stretto/own_prefix.h"
#include "stretto/programs/stretto/verbs.h"

namespace stretto::cli {

int run_command(int argc, char** argv) {
  CLI::App app("stretto: distributed training of language models", "stretto");
  app.require_subcommand(1);
  app.set_version_flag("--version", STRETTO_VERSION);
  app.add_flag_callback(
      "--cmake-prefix",
      [] {
        fmt::print("{}\n", own_prefix().string());
        throw CLI::Success();
      },
      "Print the folder for CMAKE_PREFIX_PATH of programs that use stretto's library, and exit");
  int exit_code = 0;
  try {
    add_train(app, exit_code);
    add_test(app, exit_code);
    add_predict(app, exit_code);
    add_generate(app, exit_code);
    add_inspect(app, exit_code);
    add_launch(app, exit_code);
    add_schema(app, exit_code);
    add_new(app, exit_code);
    add_strats(app, exit_code);
    add_tokenize(app, exit_code);
    add_score(app, exit_code);
    add_run_scripts(app, exit_code);
    add_run_llama(app, exit_code);
    add_export_corpus(app);
    add_pull(app);
    add_checkpoints(app, exit_code);
    add_convert(app, exit_code);
    add_data(app, exit_code);
    add_doctor(app, exit_code);
    add_search(app, exit_code);
    add_profile(app, exit_code);
    add_plan(app, exit_code);
    add_runs(app, exit_code);
    add_report(app, exit_code);
    add_top(app, exit_code);
    add_plot(app, exit_code);
    add_plot_lr(app, exit_code);
    add_track(app, exit_code);
    add_help(app, exit_code);
    require_known_verb(app, argc, argv);
    if (const auto ended = arguments::parse(app, argc, argv)) return *ended;
    arguments::flush_standard_output();
  } catch (...) {
    const arguments::Failure failure = arguments::describe_exception();
    log::error("{}", failure.message);
    return failure.exit_code;
  }
  return exit_code;
}

}  // namespace stretto::cli
