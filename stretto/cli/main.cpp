#include <cstdio>

#include "stretto/base/error.h"
#include "stretto/cli/known_verb.h"
#include "stretto/cli/verbs.h"

// The `stretto` command. It links no libtorch, so every verb that needs none answers in milliseconds.
int main(int argc, char** argv) {
  CLI::App app("stretto: distributed training of language models");
  app.require_subcommand(1);
  app.set_version_flag("--version", STRETTO_VERSION);
  int exit_code = 0;
  try {
    stretto::cli::add_train(app, exit_code);
    stretto::cli::add_test(app, exit_code);
    stretto::cli::add_predict(app, exit_code);
    stretto::cli::add_inspect(app, exit_code);
    stretto::cli::add_launch(app, exit_code);
    stretto::cli::add_schema(app, exit_code);
    stretto::cli::add_new(app, exit_code);
    stretto::cli::add_tokenize(app, exit_code);
    stretto::cli::add_checkpoints(app, exit_code);
    stretto::cli::add_doctor(app, exit_code);
    stretto::cli::add_profile(app, exit_code);
    stretto::cli::require_known_verb(app, argc, argv);
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : 2;
  } catch (const stretto::Error& error) {
    fmt::print(stderr, "stretto: error: {}\n", error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    fmt::print(stderr, "stretto: internal error: {}\n", error.what());
    return 70;
  }
  return exit_code;
}
