#include <memory>

#include "stretto/base/error.h"
#include "stretto/programs/arguments/predict_arguments.h"
#include "stretto/programs/stretto/rank_program.h"
#include "stretto/programs/stretto/verbs.h"
#include "stretto/weights/hub_cache.h"

namespace stretto::cli {
namespace {

void require_model_folder(const std::filesystem::path& folder) {
  if (std::filesystem::exists(folder / "config.json")) return;
  const char* found = !std::filesystem::exists(folder)         ? "there is no such folder"
                      : !std::filesystem::is_directory(folder) ? "it is not a folder"
                                                               : "there is no config.json in it";
  const std::string hint = std::filesystem::exists(folder) ? "" : hub::pull_hint(folder);
  const bool in_run = std::filesystem::exists(folder / "model" / "config.json");
  throw ConfigError(
      "--model {}: {}; expected a model folder with config.json, model.safetensors and the tokenizer, such as {}{}",
      folder.string(), found, in_run ? (folder / "model").string() : "RUN/model of a training run", hint);
}

void require_input_file(const std::filesystem::path& file) {
  if (file == "-") return;
  const char* found = file.empty() || !std::filesystem::exists(file) ? "there is no such file"
                      : std::filesystem::is_directory(file)          ? "it is a folder"
                                                                     : nullptr;
  if (found != nullptr)
    throw ConfigError("--input {}: {}; expected a text per line, .jsonl or .json", file.string(), found);
}

}  // namespace

void add_predict(CLI::App& app, int&) {
  CLI::App* verb = app.add_subcommand(
      "predict",
      "Predict classes, entities or answers with a trained model; prints a line of JSON per input");
  auto arguments = std::make_shared<arguments::PredictArguments>();
  arguments::add_predict_arguments(*verb, *arguments);
  verb->callback([arguments] {
    require_model_folder(hub::resolve_model(arguments->model));
    require_input_file(arguments->input);
    become_rank_program();
  });
}

}  // namespace stretto::cli
