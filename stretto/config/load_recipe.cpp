#include <set>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/config/describe.h"
#include "stretto/config/recipe.h"
#include "stretto/config/strategy.h"
#include "stretto/config/yaml.h"
#include "stretto/config/yaml_override.h"

namespace stretto {
namespace {

void resolve_strategy(Recipe& recipe) {
  Strategy strategy;
  try {
    strategy = parse_strategy(recipe.training.strategy);
  } catch (const ConfigError& error) {
    throw ConfigError("{}: {}", recipe.origins.label("training.strategy"), error.what());
  }
  std::string& precision = recipe.training.precision;
  const bool contradicts = strategy.precision && *strategy.precision != precision;
  if (contradicts && recipe.origins.given("training.precision")) {
    throw ConfigError("{}: \"{}\" says {} but {} says {}; change one",
                      recipe.origins.label("training.strategy"), recipe.training.strategy,
                      *strategy.precision, recipe.origins.mention("training.precision"), precision);
  }
  if (strategy.precision) precision = *strategy.precision;
  recipe.training.strategy = strategy.kind;
}

}  // namespace

void resolve(Recipe& recipe) {
  resolve_strategy(recipe);
  if (!recipe.tokenizer.path) recipe.tokenizer.path = recipe.model.path;
  if (!recipe.data.cache) recipe.data.cache = recipe.output / "cache";
  if (!recipe.checkpoint.monitor) recipe.checkpoint.monitor = "accuracy";
}

Recipe parse_recipe(const std::string& yaml, const std::string& name,
                    std::span<const std::string> overrides) {
  config::YamlNode document = config::parse_yaml(yaml, name);
  for (const std::string& setting : overrides) config::apply_override(document, setting);
  Recipe recipe;
  recipe.origins = config::read_fields(config::fields_of(recipe), document);
  resolve(recipe);
  return recipe;
}

Recipe load_recipe(const std::filesystem::path& file, std::span<const std::string> overrides) {
  return parse_recipe(read_file(file), file.string(), overrides);
}

std::string dump_recipe(const Recipe& recipe) {
  Recipe bound = recipe;
  return config::to_yaml(config::fields_of(bound));
}

std::string encode_recipe(const Recipe& recipe) {
  return nlohmann::json{{"yaml", dump_recipe(recipe)}, {"places", recipe.origins.places}}.dump(
      -1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Recipe decode_recipe(const std::string& text) {
  const auto encoded = nlohmann::json::parse(text);
  Recipe recipe = parse_recipe(encoded.at("yaml"), "the recipe from the launcher");
  encoded.at("places").get_to(recipe.origins.places);
  return recipe;
}

namespace {

// What may differ in a run that is resumed: where it runs, what it shows, measures and keeps, and how its samples are
// shared out.
const std::set<std::string> free_settings = {"checkpoint",
                                             "track",
                                             "evaluate",
                                             "output",
                                             "resume",
                                             "data.validation",
                                             "data.test",
                                             "data.cache",
                                             "training.device",
                                             "training.backend",
                                             "training.kernels",
                                             "training.bucket_mb",
                                             "training.batch_size",
                                             "training.global_batch_size",
                                             "training.max_tokens",
                                             "training.grad_accumulation_steps"};

// Paths of what a rank reads; what lies there is compared by its contents.
const std::set<std::string> read_paths = {"model.path",      "model.config", "tokenizer.path", "data.train",
                                          "data.validation", "data.test",    "data.cache"};

void collect_settings(const std::vector<config::Field>& fields, const std::string& prefix,
                      const std::set<std::string>& left_out, nlohmann::json& settings) {
  for (const config::Field& field : fields) {
    const std::string name = prefix + field.key;
    if (left_out.contains(name)) continue;
    if (field.is_section()) {
      collect_settings(field.fields, name + ".", left_out, settings);
    } else if (field.rule.in_use()) {
      settings[name] = config::value_of(field);
    }
  }
}

nlohmann::json settings_without(const std::set<std::string>& left_out, const Recipe& recipe) {
  Recipe bound = recipe;
  nlohmann::json settings = nlohmann::json::object();
  collect_settings(config::fields_of(bound), "", left_out, settings);
  return settings;
}

}  // namespace

nlohmann::json computing_settings(const Recipe& recipe) { return settings_without(free_settings, recipe); }

nlohmann::json shared_settings(const Recipe& recipe) { return settings_without(read_paths, recipe); }

std::string recipe_help() {
  Recipe defaults;
  return config::to_help(config::fields_of(defaults));
}

nlohmann::ordered_json recipe_schema() {
  Recipe defaults;
  return config::to_schema(config::fields_of(defaults), "stretto recipe");
}

}  // namespace stretto
