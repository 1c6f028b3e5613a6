#include <memory>

#include "stretto/programs/arguments/predict_arguments.h"
#include "stretto/programs/stretto/rank_program.h"
#include "stretto/programs/stretto/served_model.h"
#include "stretto/programs/stretto/verbs.h"

namespace stretto::cli {
void add_predict(CLI::App& app, int&) {
  CLI::App* verb = app.add_subcommand(
      "predict",
      "Predict classes, entities or answers with a trained model; prints a line of JSON per input");
  auto arguments = std::make_shared<arguments::PredictArguments>();
  arguments::add_predict_arguments(*verb, *arguments);
  verb->callback([arguments] {
    require_model_folder(arguments->model);
    require_input_file(arguments->input);
    become_rank_program();
  });
}

}  // namespace stretto::cli
