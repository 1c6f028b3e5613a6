#include "stretto/config/task_kind.h"

#include <algorithm>
#include <iterator>

#include <fmt/ranges.h>

#include "stretto/base/error.h"
#include "stretto/config/recipe.h"
#include "stretto/model_config/heads.h"
#include "stretto/model_config/outline.h"

namespace stretto {

namespace {

void require_free_sections(const TaskKind& kind) {
  Recipe recipe;
  const auto taken = settings::fields_of(recipe);
  for (const TaskSection& section : sections_of(kind)) {
    if (std::ranges::find(taken, section.key, &settings::Field::key) != taken.end())
      throw ConfigError("the task \"{}\" has a section \"{}\", but recipes have a setting of that name",
                        kind.name, section.key);
  }
}

}  // namespace

void register_task(TaskKind kind) {
  if (!kind.make)
    throw ConfigError("the task \"{}\" is registered without a function that makes it; set make", kind.name);
  const bool is_new = task_kinds().find(kind.name) == nullptr;
  if (is_new) require_free_sections(kind);
  task_kinds().add(std::move(kind));  // throws if it is not new
}

const TaskKind& task_kind(const Recipe& recipe) {
  return task_kinds().at(recipe.task, recipe.origins.label("task"));
}

const TaskKind* maker_of(const ModelConfig& model) {
  for (const TaskKind& kind : task_kinds().entries())
    if (kind.new_model && kind.new_model->is_chosen(model)) return &kind;
  return nullptr;
}

std::vector<std::string> new_model_types() {
  std::vector<std::string> types;
  for (const TaskKind& kind : task_kinds().entries())
    if (kind.new_model) types.push_back(kind.new_model->type);
  return types;
}

std::vector<std::string> model_types(const TaskKind& kind) {
  if (kind.new_model) return {kind.new_model->type};
  return kind.head == heads::causal_language_model ? bundled_decoders() : std::vector<std::string>{};
}

std::vector<std::string> model_types() {
  std::vector<std::string> types = new_model_types();
  std::ranges::copy(bundled_decoders(), std::back_inserter(types));
  return types;
}

std::vector<TaskSection> sections_of(const TaskKind& kind) {
  std::vector<TaskSection> sections;
  if (kind.settings) {
    std::string key = kind.name;
    std::ranges::replace(key, '-', '_');
    sections.push_back({key, fmt::format("{} (task: {})", kind.help, kind.name), *kind.settings});
  }
  sections.insert(sections.end(), kind.further_sections.begin(), kind.further_sections.end());
  return sections;
}

std::string tasks_with(const std::function<bool(const TaskKind&)>& property) {
  std::vector<std::string> names;
  for (const TaskKind& kind : task_kinds().entries())
    if (property(kind)) names.push_back(kind.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

TaskSettings::TaskSettings() {
  for (const TaskKind& kind : task_kinds().entries())
    for (TaskSection& section : sections_of(kind))
      sections_.push_back({kind.name, std::move(section.key), std::move(section.help), section.defaults});
}

void TaskSettings::fields(settings::Fields& field, const std::string& task) {
  for (Section& section : sections_)
    field(section.key, section.settings, section.help,
          settings::Rule{}.used_with("task", task, {section.task}));
}

void TaskSettings::throw_no_section() {
  throw ConfigError("the program reads settings of a task that is not registered");
}

}  // namespace stretto
