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

// A section of recipes that is read with one task only. TaskSettings finds it by the type of its struct.
struct TaskSection {
  std::string key;
  std::string help;
  settings::Settings defaults;
};

// A model that a task creates from its training files instead of loading it from a folder. It is selected by
// model.type, or by a model.config of this model_type.
struct NewModel {
  std::string type;     // "sequence-tagger"
  std::string section;  // of its settings: "sequence_tagger"
  std::function<bool(const ModelConfig&)> is_chosen;
  // Replaces names of hub models among its settings by their folders.
  std::function<void(Recipe&)> resolve;
  // Throws ConfigError for settings that contradict each other, or that have no effect because this model is
  // not selected.
  std::function<void(const Recipe&)> check;
};

// A value of a recipe's `task`, with what recipes need to know about it before a process is started.
struct TaskKind {
  std::string name;  // in recipes: task: text-classification
  std::string help;  // one line
  // The settings of its section, which is named like the task with "_" for "-". Unset: it has no section.
  std::optional<settings::Settings> settings = std::nullopt;
  std::vector<TaskSection> further_sections = {};
  // The head of the models that it fine-tunes (model_config/heads.h). "": it creates its own model, and the
  // sections model and tokenizer are not required.
  std::string head = {};
  // The metric that checkpoint.monitor defaults to. Empty: accuracy.
  std::function<std::string(const Recipe&)> default_monitor = {};
  // Throws ConfigError for settings of its sections that contradict each other. Empty: there are none.
  std::function<void(const Recipe&)> check = {};
  // the default of data.max_length for this task, if it has one
  std::optional<int64_t> max_length = std::nullopt;
  std::optional<NewModel> new_model = std::nullopt;
  bool splits_words = false;      // texts are lists of words: tokenizer.add_prefix_space is true
  bool draws_validation = false;  // it implements data.validation_split
  bool writes_texts = false;      // it implements evaluate.samples
  bool divides_models = false;    // it implements training.mesh.tp
  bool reads_corpora = false;     // data files may be folders that `stretto data tokenize` wrote
  // Creates the task on a rank. Empty for the bundled tasks, which need libtorch: tasks/registry.cpp creates
  // them.
  std::function<std::unique_ptr<Task>(const TaskContext&)> make = {};
};

// All kinds; the first is the default of `task`. A program adds its own by register_task.
Registry<TaskKind>& task_kinds();

// Makes a kind available to recipes. Throws ConfigError for a name or section that is taken, and for a kind
// without `make`. Not thread-safe: call it at the start of a program, before it creates or reads a recipe.
void register_task(TaskKind kind);

// The kind of recipe.task. Throws ConfigError, which lists the known tasks, for an unknown name.
const TaskKind& task_kind(const Recipe& recipe);

// The kind that creates the recipe's new model; null if the model comes from a folder.
const TaskKind* maker_of(const ModelConfig& model);

// NewModel::type of all kinds that have one.
std::vector<std::string> new_model_types();

// The values of model.type: those of a kind, or of all.
std::vector<std::string> model_types(const TaskKind& kind);
std::vector<std::string> model_types();

// The sections of a kind, beginning with that of its settings.
std::vector<TaskSection> sections_of(const TaskKind& kind);

// The names of the kinds that have a property, joined by ", ".
std::string tasks_with(const std::function<bool(const TaskKind&)>& property);

// The sections of a recipe that belong to tasks (TaskKind). Only those of the recipe's task are read and
// written. It stores the settings of all registered tasks, each with its own defaults.
class TaskSettings {
 public:
  // Stores the default settings of the tasks that are registered now.
  TaskSettings();

  // The settings of the section whose struct is a T, for any task:
  // recipe.task_settings.as<TextClassificationConfig>(). Throws ConfigError if no registered task has such a
  // section.
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

  // Declares the sections; each applies only with its own task. REQUIRES: `task`, the recipe's, outlives the
  // fields.
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
