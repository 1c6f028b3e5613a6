#include <unistd.h>

#include "stretto/base/error.h"
#include "stretto/config/checks/checks.h"
#include "stretto/config/task_kind.h"
#include "stretto/weights/hub_cache.h"

// The files and folders that a recipe names.
namespace stretto {
namespace {

// Returns a hint for a setting that may name a model of the hub.
std::string download_hint(const std::string& setting, const std::filesystem::path& path) {
  return setting == "model.path" || setting == "tokenizer.path" ? hub::pull_hint(path) : "";
}

// Whether the setting may be a folder: models, tokenizers and, for some tasks, data.
bool may_be_folder(const Recipe& recipe, const std::string& setting) {
  return setting == "model.path" || setting == "tokenizer.path" ||
         (setting.starts_with("data.") && task_kind(recipe).reads_corpora);
}

}  // namespace

void require_file(const Recipe& recipe, const std::string& setting, const std::filesystem::path& path) {
  std::error_code failed;
  const auto status = std::filesystem::status(path, failed);
  if (std::filesystem::exists(status)) {
    if (std::filesystem::is_regular_file(status) || may_be_folder(recipe, setting)) return;
    throw ConfigError("{}: {} is {}; expected a file", recipe.origins.label(setting), path.string(),
                      std::filesystem::is_directory(status)
                          ? "a folder"
                          : "a pipe or a device, which cannot be mapped; write the content to a file first");
  }
  if (failed && status.type() != std::filesystem::file_type::not_found) {
    throw ConfigError("{}: {} cannot be accessed: {}", recipe.origins.label(setting), path.string(),
                      failed.message());
  }
  throw ConfigError("{}: {} does not exist (relative paths start at the working directory){}",
                    recipe.origins.label(setting), path.string(), download_hint(setting, path));
}

void require_path(const Recipe& recipe, const std::string& setting,
                  const std::optional<std::filesystem::path>& path, const std::string& why) {
  if (!path)
    throw ConfigError("{} is required {}; add it to the recipe, or pass --set {}=...", setting, why, setting);
  require_file(recipe, setting, *path);
}

void check_offload(const Recipe& recipe, const char* setting,
                   const std::optional<std::filesystem::path>& folder, const char* content) {
  if (!folder || *folder == in_output_folder) return;
  std::error_code failed;
  const bool is_folder = std::filesystem::is_directory(*folder, failed);
  if (is_folder && ::access(folder->c_str(), W_OK | X_OK) == 0) return;
  throw ConfigError("{}: {} {}; expected a folder on a disk of each host, with room for {}",
                    recipe.origins.label(setting), folder->string(),
                    is_folder                                  ? "cannot be written to"
                    : std::filesystem::exists(*folder, failed) ? "is a file"
                                                               : "does not exist",
                    content);
}

void check_output(const Recipe& recipe) {
  std::error_code failed;
  if (std::filesystem::exists(recipe.output / "config.json", failed)) {
    throw ConfigError(
        "{}: {} is a model folder, as it holds a config.json; expected the folder of a run, which holds its model in model/",
        recipe.origins.label("output"), recipe.output.string());
  }
  std::filesystem::path there = recipe.output;  // or its nearest parent that exists
  while (!std::filesystem::exists(there, failed) && there.has_relative_path()) there = there.parent_path();
  if (!std::filesystem::exists(there, failed) || std::filesystem::is_directory(there, failed)) return;
  throw ConfigError("{}: {} is a file; expected a folder, which is created if it does not exist",
                    recipe.origins.label("output"), there.string());
}

void check_trained_model(const Recipe& recipe) {
  const std::filesystem::path model = recipe.output / "model";
  std::error_code ignored;
  if (std::filesystem::exists(model / "config.json", ignored)) return;
  throw ConfigError("{}: there is no trained model in {}; run `stretto train` with this recipe first",
                    recipe.origins.label("output"), model.string());
}

}  // namespace stretto
