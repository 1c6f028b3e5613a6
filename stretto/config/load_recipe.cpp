#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/inputs.h"
#include "stretto/base/strings.h"
#include "stretto/config/recipe.h"
#include "stretto/config/task_kind.h"
#include "stretto/config/topology_request.h"
#include "stretto/settings/describe.h"
#include "stretto/settings/yaml.h"
#include "stretto/settings/yaml_override.h"
#include "stretto/weights/hub_cache.h"

namespace stretto {
namespace {

// Throws ConfigError for a setting that has no effect under the strategy.
void require_applicable(const Recipe& recipe) {
  TrainingConfig training = recipe.training, defaults;
  const auto fields = settings::fields_of(training), unset = settings::fields_of(defaults);
  for (size_t i = 0; i < fields.size(); ++i) {
    const auto& applicability = fields[i].rule.applicability;
    if (!applicability || applicability->holds()) continue;
    if (settings::value_of(fields[i]) == settings::value_of(unset[i])) continue;
    throw ConfigError("{}: it applies to {}; {} is {}; remove one",
                      recipe.origins.label("training." + fields[i].key), applicability->to,
                      recipe.origins.mention("training.strategy"), training.strategy);
  }
}

// Puts the ranks of a strategy that offloads to the memory of the host there. `name`: as it was set.
void require_host_memory(Recipe& recipe, const std::string& name) {
  const settings::Origins& origins = recipe.origins;
  if (recipe.training.device == DeviceChoice::cuda) {
    throw ConfigError(
        "{}: {} offloads to the memory of the host, where CPU ranks have their state; {} is cuda: GPUs do not offload; remove one",
        origins.label("training.strategy"), name, origins.mention("training.device"));
  }
  recipe.training.device = DeviceChoice::cpu;
  recipe.remarks.lines.push_back(
      fmt::format("strategy   {}: the ranks compute on the CPU, in whose memory their state is", name));
}

void resolve_compute_options(Recipe& recipe) {
  TrainingConfig& training = recipe.training;
  const ComputeOptions options = parse_compute_options(
      {training.strategy, training.precision, training.products}, training_labels(recipe.origins));
  const std::string name = training.strategy;
  training.strategy = options.strategy;
  training.precision = options.precision;
  if (options.optimizer_in_files && !training.offload_optimizer)
    training.offload_optimizer = in_output_folder;
  if (options.parameters_in_files && !training.offload_parameters)
    training.offload_parameters = in_output_folder;
  require_applicable(recipe);
  if (options.in_host_memory) require_host_memory(recipe, name);
}

// A second call changes nothing.
void resolve_fast_dev_run(Recipe& recipe) {
  if (recipe.training.fast_dev_run == 0) recipe.training.fast_dev_run.reset();
  if (!recipe.training.fast_dev_run) return;
  const int64_t steps = *recipe.training.fast_dev_run;
  recipe.training.max_steps = steps;
  recipe.evaluate.max_samples =
      steps * recipe.evaluate.batch_size.value_or(recipe.training.batch_size.value_or(32));
  recipe.evaluate.at_start = false;
  recipe.checkpoint.every = "never";
  recipe.checkpoint.save_models.clear();
  recipe.track.trackers.clear();
  recipe.track.log_every = 1;
  recipe.resume = "false";
  const char* folder = "fast_dev_run";
  if (recipe.output.filename() != folder) recipe.output /= folder;
}

}  // namespace

void resolve(Recipe& recipe) {
  resolve_compute_options(recipe);
  resolve_fast_dev_run(recipe);
  for (auto* path : {&recipe.model.path, &recipe.tokenizer.path})
    if (*path) *path = hub::resolve_model(**path);
  for (const TaskKind& kind : task_kinds().entries())
    if (kind.new_model) kind.new_model->resolve(recipe);
  if (!recipe.tokenizer.path) recipe.tokenizer.path = recipe.model.path;
  if (!recipe.data.cache) recipe.data.cache = recipe.output / "cache";
  const bool evaluates = !recipe.evaluate.every.never();
  const TaskKind& task = task_kind(recipe);
  if (evaluates && !recipe.checkpoint.monitor)
    recipe.checkpoint.monitor = task.default_monitor ? task.default_monitor(recipe) : "accuracy";
  if (task.max_length && !recipe.origins.given("data.max_length")) recipe.data.max_length = *task.max_length;
}

Recipe parse_recipe(const std::string& yaml, const std::string& name, std::span<const std::string> overrides,
                    const std::vector<settings::Field>& program) {
  settings::YamlNode document = settings::parse_yaml(yaml, name);
  for (const std::string& setting : overrides) settings::apply_override(document, setting);
  Recipe recipe;
  recipe.program.list = program;
  recipe.origins = settings::read_fields(settings::fields_of(recipe), document);
  resolve(recipe);
  return recipe;
}

Recipe load_recipe(const std::filesystem::path& file, std::span<const std::string> overrides,
                   const std::vector<settings::Field>& program) {
  return parse_recipe(read_file(file), file.string(), overrides, program);
}

std::string dump_recipe(const Recipe& recipe) {
  Recipe bound = recipe;
  return settings::to_yaml(settings::fields_of(bound));
}

std::string encode_recipe(const Recipe& recipe) {
  return nlohmann::json{{"yaml", dump_recipe(recipe)}, {"places", recipe.origins.places}}.dump(
      -1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Recipe decode_recipe(const std::string& text, const std::vector<settings::Field>& program) {
  const auto encoded = nlohmann::json::parse(text);
  Recipe recipe = parse_recipe(encoded.at("yaml"), "recipe from the launcher", {}, program);
  encoded.at("places").get_to(recipe.origins.places);
  return recipe;
}

namespace {

bool is_input_path(const settings::Field& field) {
  if (const auto* value = std::get_if<std::optional<settings::FileOrSection>*>(&field.slot))
    return !**value || !(**value)->is_section();
  const bool is_path = std::holds_alternative<std::filesystem::path*>(field.slot) ||
                       std::holds_alternative<std::optional<std::filesystem::path>*>(field.slot);
  return is_path && field.key != "output";
}

// `is_included` receives each section and setting.
template <class IsIncluded>
void collect_settings(const std::vector<settings::Field>& fields, const std::string& prefix,
                      const IsIncluded& is_included, nlohmann::json& settings) {
  for (const settings::Field& field : fields) {
    const std::string name = prefix + field.key;
    if (!is_included(field)) continue;
    if (field.is_section()) {
      if (!field.rule.in_use()) continue;
      collect_settings(field.fields, name + ".", is_included, settings);
    } else if (field.rule.in_use()) {
      settings[name] = settings::value_of(field);
    }
  }
}

template <class IsIncluded>
nlohmann::json select_settings(const Recipe& recipe, const IsIncluded& is_included) {
  Recipe bound = recipe;
  nlohmann::json settings = nlohmann::json::object();
  collect_settings(settings::fields_of(bound), "", is_included, settings);
  return settings;
}

}  // namespace

bool may_change_on_resume(const std::string& name) {
  Recipe defaults;
  const auto fields = settings::fields_of(defaults);
  const std::vector<settings::Field>* level = &fields;
  for (const std::string_view key : split(name, '.')) {
    const settings::Field* field = settings::declaration_in_use(*level, key);
    if (field == nullptr) return false;
    if (field->rule.free_on_resume) return true;
    level = &field->fields;
  }
  return false;
}

nlohmann::json computing_settings(const Recipe& recipe) {
  return select_settings(recipe, [](const auto& field) { return !field.rule.free_on_resume; });
}

nlohmann::json shared_settings(const Recipe& recipe) {
  return select_settings(recipe, [](const auto& field) { return !is_input_path(field); });
}

std::vector<Input> inputs_of(const Recipe& recipe) {
  std::vector<Input> inputs;
  const nlohmann::json settings = shared_settings(recipe);
  for (const auto& [name, value] : settings.items()) {
    const auto place = recipe.origins.places.find(name);
    inputs.push_back({name, value.is_null() ? "unset" : value.dump(),
                      place == recipe.origins.places.end() ? "" : place->second});
  }
  return inputs;
}

std::string recipe_help(const std::vector<settings::Field>& program) {
  Recipe defaults;
  defaults.program.list = program;
  return settings::to_help(settings::fields_of(defaults));
}

std::string recipe_sections(const std::vector<settings::Field>& program) {
  Recipe defaults;
  defaults.program.list = program;
  return settings::sections_help(settings::fields_of(defaults));
}

std::string recipe_help_on(const std::string& name) {
  Recipe defaults;
  const auto fields = settings::fields_of(defaults);
  std::string text = settings::to_help(fields, name);
  if (!text.empty()) return text;
  std::string hint = did_you_mean(name, settings::all_names(fields));
  for (const std::string& known : settings::all_names(fields)) {
    if (hint.empty() && known.ends_with("." + name)) hint = fmt::format("; did you mean \"{}\"?", known);
  }
  throw ConfigError("\"{}\" is neither a verb nor a setting of a recipe{}", name, hint);
}

nlohmann::ordered_json recipe_schema() {
  Recipe defaults;
  return settings::to_schema(settings::fields_of(defaults), "stretto recipe");
}

}  // namespace stretto
