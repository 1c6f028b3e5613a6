#include "stretto/programs/stretto/served_model.h"

#include "stretto/base/error.h"
#include "stretto/weights/hub_cache.h"

namespace stretto::cli {

void require_model_folder(const std::filesystem::path& model) {
  const std::filesystem::path folder = hub::resolve_model(model);
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

}  // namespace stretto::cli
