#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stretto/base/registry.h"
#include "stretto/settings/choice.h"

namespace stretto {

class Task;          // tasks/task.h
struct TaskContext;  // tasks/task.h
struct Recipe;       // config/recipe.h
struct ModelConfig;  // config/recipe.h

// A section of recipes that is read with one task only. Its struct is of a type of its own, by which
// TaskSettings finds it.
struct TaskSection {
  std::string key;
  std::string help;
  settings::Settings defaults;
};

// A model that a task makes from its training files, where other models come from a folder: chosen by
// model.type, or by a model.config of this model_type.
struct NewModel {
  std::string type;     // "sequence-tagger"
  std::string section;  // of its settings: "sequence_tagger"
  std::function<bool(const ModelConfig&)> is_chosen;
  // Replaces names of models of the hub among its settings by their folders.
  std::function<void(Recipe&)> resolve;
  // Throws ConfigError for settings that contradict each other, or that have no effect because it is not
  // chosen.
  std::function<void(const Recipe&)> check;
};

// A value of a recipe's `task`, and what recipes need to know of it before a process is started.
struct TaskKind {
  std::string name;  // in recipes: task: text-classification
  std::string help;  // one line
  // The settings of its section, named as the task with "_" for "-". Unset: it has none.
  std::optional<settings::Settings> settings = std::nullopt;
  std::vector<TaskSection> further_sections = {};
  // The head of the models that it fine-tunes (model_config/heads.h). "": it makes a model of its own, and
  // the sections model and tokenizer are not required.
  std::string head = {};
  // The metric that checkpoint.monitor defaults to. Empty: accuracy.
  std::function<std::string(const Recipe&)> default_monitor = {};
  // Throws ConfigError for settings of its sections that contradict each other. Empty: there are none.
  std::function<void(const Recipe&)> check = {};
  std::optional<int64_t> max_length = std::nullopt;  // the default of data.max_length, where it has its own
  std::optional<NewModel> new_model = std::nullopt;
  bool splits_words = false;      // texts are lists of words: tokenizer.add_prefix_space is true
  bool draws_validation = false;  // it implements data.validation_split
  bool reads_corpora = false;     // data files may be folders that `stretto data tokenize` wrote
  // Makes the task on a rank. Empty for the bundled ones, which need libtorch: they are made in
  // tasks/registry.cpp.
  std::function<std::unique_ptr<Task>(const TaskContext&)> make = {};
};

// All kinds; the first is the default of `task`. A program adds its own by register_task.
Registry<TaskKind>& task_kinds();

// Makes a kind known to recipes, from then on. Throws ConfigError for a name or section that is taken,
// and without `make`. Not thread-safe: at the start of a program, before it makes or reads a recipe.
void register_task(TaskKind kind);

// The kind of recipe.task. Throws ConfigError, which lists the known ones, for an unknown name.
const TaskKind& task_kind(const Recipe& recipe);

// The kind whose new model the recipe's is; null if that comes from a folder.
const TaskKind* maker_of(const ModelConfig& model);

// NewModel::type of all kinds that have one.
std::vector<std::string> new_model_types();

// The sections of a kind: that of its settings first.
std::vector<TaskSection> sections_of(const TaskKind& kind);

// The names of the kinds that have a property, joined by ", ".
std::string tasks_with(const std::function<bool(const TaskKind&)>& property);

// The sections of a recipe that belong to tasks (TaskKind), of which those of the recipe's task are read and
// written. It keeps the settings of all registered tasks, each with its own defaults.
class TaskSettings {
 public:
  // Holds the settings of the tasks that are registered now.
  TaskSettings();

  // The settings of the section whose struct is a T, whatever the task:
  // recipe.task_settings.as<TextClassificationConfig>(). Throws ConfigError if no registered task has one.
  template <class T>
  T& as() {
    for (Section& section : sections_)
      if (T* settings = section.settings.template get<T>()) return *settings;
    throw_no_section();
  }
  template <class T>
  const T& as() const {
    return const_cast<TaskSettings*>(this)->as<T>();
  }

  // Declares the sections, each used with its own task. REQUIRES: `task`, the recipe's, outlives the fields.
  void fields(settings::Fields& field, const std::string& task);

  bool operator==(const TaskSettings&) const = default;

 private:
  struct Section {
    std::string task, key, help;
    settings::Settings settings;
    bool operator==(const Section&) const = default;
  };
  [[noreturn]] static void throw_no_section();

  std::vector<Section> sections_;
};

}  // namespace stretto
