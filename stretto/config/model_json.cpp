#include "stretto/config/model_json.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include <fmt/ranges.h>

#include "stretto/base/error.h"
#include "stretto/config/task_kind.h"
#include "stretto/model_config/config_json.h"
#include "stretto/model_config/outline.h"

namespace stretto {
namespace {

const std::string section_name = "model.config";

void set_type(ModelJson& model, const std::string& type) {
  nlohmann::json& model_type = model.json["model_type"];
  if (!model_type.is_null() && model_type != type) {
    throw ConfigError("{}: model_type: found {}, but model.type is {}; remove one of them", model.name,
                      model_type.dump(), type);
  }
  model_type = type;
}

bool is_one_of(const std::string& type, const std::vector<std::string>& types) {
  return std::ranges::find(types, type) != types.end();
}

// Throws ConfigError for a bundled family that ignores keys it does not know: mistakes would have no effect.
std::string type_of(const ModelJson& model) {
  std::string type;
  ConfigJson(model.json, model.name).read("model_type", type);
  const std::string known = fmt::format("{}", fmt::join(bundled_decoders(), ", "));
  if (type.empty())
    throw ConfigError("{}: model_type is missing; set model.type to one of: {}", model.name, known);
  if (!is_one_of(type, bundled_decoders()) && is_one_of(type, bundled_model_types())) {
    throw ConfigError(
        "{}: model_type: a {} cannot be described by a section, but {} can; set model.config to the path of its config.json",
        model.name, type, known);
  }
  return type;
}

// `text`: of an error in the section; it begins with the key.
[[noreturn]] void throw_with_place(const settings::Origins& origins, const std::string& text) {
  const auto end =
      std::ranges::find_if(text, [](unsigned char c) { return std::isalnum(c) == 0 && c != '_'; });
  const std::string key = section_name + "." + std::string(text.begin(), end);
  if (!origins.given(key) && text.starts_with("model_type: ") && origins.given("model.type"))
    throw ConfigError("{}{}", origins.label("model.type"), text.substr(text.find(':')));
  if (!origins.given(key)) throw ConfigError("{}: {}", origins.label(section_name), text);
  throw ConfigError("{}{}", origins.label(key), std::string(end, text.end()));
}

}  // namespace

ModelJson read_model_json(const ModelConfig& model) {
  if (model.path) {
    const std::filesystem::path file = *model.path / "config.json";
    return {read_config_json(file), file.string()};
  }
  const settings::FileOrSection& config = model.config.value();
  ModelJson read = config.is_section() ? ModelJson{config.section, section_name}
                                       : ModelJson{read_config_json(config.file), config.file.string()};
  if (model.type && read.json.is_object()) set_type(read, *model.type);
  return read;
}

void with_section_places(const settings::Origins& origins, const std::function<void()>& use) {
  const std::string prefix = section_name + ": ";
  try {
    use();
  } catch (const ConfigError& error) {
    const std::string message = error.what();
    if (!message.starts_with(prefix)) throw;
    throw_with_place(origins, message.substr(prefix.size()));
  }
}

void check_model_section(const Recipe& recipe) {
  with_section_places(recipe.origins, [&] {
    const ModelJson model = read_model_json(recipe.model);
    const std::string type = type_of(model);
    const auto outline = outline_of(model.json, model.name, task_kind(recipe).head);
    if (!outline && is_one_of(type, bundled_decoders())) {
      throw ConfigError("{}: model_type: a {} is not for the task {}, but for causal-lm", model.name, type,
                        recipe.task);
    }
  });
}

}  // namespace stretto
