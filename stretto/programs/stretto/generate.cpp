#include <memory>

#include "stretto/programs/arguments/generate_arguments.h"
#include "stretto/programs/stretto/rank_program.h"
#include "stretto/programs/stretto/served_model.h"
#include "stretto/programs/stretto/verbs.h"

namespace stretto::cli {

void add_generate(CLI::App& app, int&) {
  CLI::App* verb = app.add_subcommand("generate", "Continue texts with a language model");
  auto arguments = std::make_shared<arguments::GenerateArguments>();
  arguments::add_generate_arguments(*verb, *arguments);
  verb->callback([arguments] {
    require_model_folder(arguments->model);
    require_input_file(arguments->input);
    become_rank_program();
  });
}

}  // namespace stretto::cli
