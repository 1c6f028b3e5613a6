#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/config/checks/checks.h"
#include "stretto/config/model_json.h"
#include "stretto/config/task_kind.h"

namespace stretto {
namespace {

// A new model must be of the recipe's task, and it makes its own tokenizer.
void check_maker(const Recipe& recipe, const TaskKind& maker) {
  const auto& origins = recipe.origins;
  const char* const chosen = recipe.model.type ? "model.type" : "model.config";
  if (recipe.task != maker.name)
    throw ConfigError("{}: a {} is for the task {}; {} is {}", origins.label(chosen), maker.new_model->type,
                      maker.name, origins.mention("task"), recipe.task);
  for (const char* other : {"tokenizer.path", "tokenizer.lowercase", "tokenizer.add_prefix_space"}) {
    if (origins.given(other))
      throw ConfigError("{}: a new {} makes its own tokenizer; remove this, or {}", origins.label(other),
                        maker.new_model->type, origins.mention(chosen));
  }
}

// A type that only another task takes is refused together with its settings.
void check_type(const Recipe& recipe, const std::string& type) {
  const std::vector<std::string> all = model_types(), of_task = model_types(task_kind(recipe));
  if (std::ranges::find(all, type) != all.end()) return;
  const std::vector<std::string>& expected = of_task.empty() ? all : of_task;
  throw ConfigError("{}: \"{}\" is not one of {}{}", recipe.origins.label("model.type"), type,
                    fmt::join(expected, ", "), did_you_mean(type, expected));
}

}  // namespace

void check_model(const Recipe& recipe) {
  const ModelConfig& model = recipe.model;
  if (model.type) check_type(recipe, *model.type);
  if (model.path && model.config) {
    throw ConfigError(
        "{}: a model is either loaded from a folder or created from a config.json with random weights; remove this or {}",
        recipe.origins.label("model.config"), recipe.origins.mention("model.path"));
  }
  const TaskKind* const maker = maker_of(model);
  if (model.type) {
    for (const char* other : {"model.path", "model.config"}) {
      if (!recipe.origins.given(other) || (maker == nullptr && model.config)) continue;
      throw ConfigError("{}: {} is a new model with random weights; remove this or {}",
                        recipe.origins.label(other), *model.type, recipe.origins.mention("model.type"));
    }
    if (maker == nullptr && !model.config) {
      throw ConfigError(
          "{}: the sizes of the model are missing; set model.config to a section of keys of config.json, such as {{hidden_size: 256}}, or to the path of a file",
          recipe.origins.label("model.type"));
    }
  }
  if (maker != nullptr) check_maker(recipe, *maker);
  for (const TaskKind& kind : task_kinds().entries())
    if (kind.new_model) kind.new_model->check(recipe);
  if (maker != nullptr) return;
  if (model.config && model.config->is_section()) {
    check_model_section(recipe);
  } else if (model.config) {
    require_file(recipe, "model.config", model.config->file);
    if (model.type) read_model_json(model);
  } else {
    require_path(recipe, "model.path", model.path, "(or model.config, for random weights)");
    std::error_code failed;  // whoever reads the file reports other failures
    const auto config = std::filesystem::status(*model.path / "config.json", failed);
    if (config.type() == std::filesystem::file_type::not_found) {
      throw ConfigError(
          "{}: {} holds no config.json; expected the folder of a model, as save_pretrained() writes it",
          recipe.origins.label("model.path"), model.path->string());
    }
  }
  require_path(recipe, "tokenizer.path", recipe.tokenizer.path,
               fmt::format("if model.path is not set and model.config is not of model_type {}",
                           fmt::join(new_model_types(), " or ")));
}

void check_start(const Recipe& recipe) {
  std::error_code failed;
  const auto output = std::filesystem::weakly_canonical(recipe.output, failed);
  for (const auto& [setting, path] :
       {std::pair("model.path", recipe.model.path), {"tokenizer.path", recipe.tokenizer.path}}) {
    if (!path) continue;
    const auto inside = std::filesystem::weakly_canonical(*path, failed).lexically_relative(output);
    const std::string first = inside.empty() ? "" : inside.begin()->string();
    if (first != "model" && first != "models" && first != "checkpoints") continue;
    throw ConfigError(
        "{}: {} is in the output folder, {}, whose models a new run replaces; choose another {}",
        recipe.origins.label(setting), path->string(), recipe.output.string(),
        recipe.origins.mention("output"));
  }
}

}  // namespace stretto
