#include "stretto/cli/command.h"

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/cli/known_verb.h"
#include "stretto/cli/verbs.h"

namespace stretto::cli {

int run_command(int argc, char** argv) {
  CLI::App app("stretto: distributed training of language models");
  app.require_subcommand(1);
  app.set_version_flag("--version", STRETTO_VERSION);
  int exit_code = 0;
  try {
    add_train(app, exit_code);
    add_test(app, exit_code);
    add_predict(app, exit_code);
    add_inspect(app, exit_code);
    add_launch(app, exit_code);
    add_schema(app, exit_code);
    add_new(app, exit_code);
    add_tokenize(app, exit_code);
    add_checkpoints(app, exit_code);
    add_doctor(app, exit_code);
    add_profile(app, exit_code);
    require_known_verb(app, argc, argv);
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : 2;
  } catch (const Error& error) {
    log::error("{}", error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    log::error("internal error: {}", error.what());
    return 70;
  }
  return exit_code;
}

}  // namespace stretto::cli
