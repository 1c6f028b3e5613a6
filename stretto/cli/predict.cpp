#include <memory>

#include "stretto/cli/predict_arguments.h"
#include "stretto/cli/rank_program.h"
#include "stretto/cli/verbs.h"

namespace stretto::cli {

void add_predict(CLI::App& app, int&) {
  CLI::App* verb = app.add_subcommand("predict", "Classify texts with a trained model; JSON lines out");
  auto arguments = std::make_shared<PredictArguments>();
  add_predict_arguments(*verb, *arguments);
  verb->callback([arguments] { become_rank_program(); });
}

}  // namespace stretto::cli
