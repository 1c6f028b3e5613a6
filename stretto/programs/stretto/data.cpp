#include "stretto/programs/stretto/data.h"

#include "stretto/programs/stretto/verbs.h"

namespace stretto::cli {

void add_data(CLI::App& app, int& exit_code) {
  CLI::App* verb =
      app.add_subcommand("data", "Write text as tokens for language models, and show such a corpus");
  verb->require_subcommand(1);
  add_data_tokenize(*verb, exit_code);
  add_data_inspect(*verb, exit_code);
}

}  // namespace stretto::cli
