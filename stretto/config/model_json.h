#pragma once

#include <functional>
#include <string>

#include <nlohmann/json.hpp>

#include "stretto/config/recipe.h"

namespace stretto {

// A config.json, and its name for messages: that of the file, or model.config for a section.
struct ModelJson {
  nlohmann::json json;
  std::string name;
};

// The config.json of the recipe's model: that in the folder model.path, or model.config, a file or a section,
// with model.type as its model_type. Throws ConfigError, DataError or IoError for a file that cannot be read,
// and ConfigError where model.type differs from the model_type. REQUIRES: model.path or model.config is set.
ModelJson read_model_json(const ModelConfig& model);

// Calls use(), which makes a model of read_model_json(). Its ConfigErrors on the section model.config begin
// with the position of the key in the recipe.
void with_section_places(const settings::Origins& origins, const std::function<void()>& use);

// Checks model.config where it is a section: its keys, their types and values, for a model with the task's
// head. Throws ConfigError that begins with the position of the key in the recipe.
void check_model_section(const Recipe& recipe);

}  // namespace stretto
