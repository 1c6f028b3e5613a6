#include "stretto/config/tasks/text_classification.h"

#include "stretto/base/error.h"
#include "stretto/config/recipe.h"
#include "stretto/config/task_kind.h"
#include "stretto/model_config/heads.h"
#include "stretto/settings/rule.h"

namespace stretto {
namespace {

std::string monitor_of_classes(const Recipe& recipe) {
  const auto& settings = recipe.task_settings.as<TextClassificationConfig>();
  if (settings.glue_task == GlueName::cola) return "matthews_correlation";
  if (settings.problem() == ProblemType::regression) return "pearson";
  return settings.problem() == ProblemType::multi_label_classification ? "f1_micro" : "accuracy";
}

void check_text_classification(const Recipe& recipe) {
  const auto& settings = recipe.task_settings.as<TextClassificationConfig>();
  const auto& origins = recipe.origins;
  const auto problem = settings.problem();
  const bool is_regression = problem == ProblemType::regression;
  const bool is_multi_label = problem == ProblemType::multi_label_classification;
  const auto require = [&](const char* name, bool in_use, bool fits) {
    if (!in_use || fits) return;
    throw ConfigError("{}: it has no meaning with {}: {}; remove one",
                      origins.label(std::string("text_classification.") + name),
                      origins.mention("text_classification.problem_type"), problem);
  };
  require("label_smoothing", settings.label_smoothing > 0, !is_regression && !is_multi_label);
  require("class_weights", !settings.class_weights.empty(), !is_regression);
  require("label_separator", settings.label_separator.has_value(), is_multi_label);
  require("glue_task", settings.glue_task.has_value(),
          (settings.glue_task == GlueName::stsb) == is_regression && !is_multi_label);
  if (settings.label_separator && settings.label_separator->empty())
    throw ConfigError("{}: it is empty; expected a text between labels, such as \";\"",
                      origins.label("text_classification.label_separator"));
}

}  // namespace

void TextClassificationConfig::fields(settings::Fields& field) {
  field(
      "problem_type", problem_type,
      "as in transformers: single_label_classification; regression, of labels that are numbers; multi_label_classification, of any number of classes per text; unset: single_label_classification, or what glue_task is");
  field(
      "label_separator", label_separator,
      "multi-label: the text between the labels of a row, where they are not lists of JSON Lines; unset: a comma");
  field(
      "class_weights", class_weights,
      "factors of the losses of classes, each LABEL=WEIGHT; others have weight 1; multi-label: of the texts that have the class");
  field("label_smoothing", label_smoothing,
        "part of the probability that is spread over all classes in the loss (Szegedy et al. 2016)",
        settings::at_least(0).below(1));
  field("glue_task", glue_task, "evaluate with the metrics of this task of GLUE");
}

settings::OneOf<ProblemType> TextClassificationConfig::problem() const {
  if (problem_type) return *problem_type;
  return glue_task == GlueName::stsb ? ProblemType::regression : ProblemType::single_label_classification;
}

TaskKind text_classification_kind() {
  return {.name = "text-classification",
          .help = "kind of labels, loss and metrics",
          .settings = settings::Settings(TextClassificationConfig{}),
          .head = heads::sequence_classification,
          .default_monitor = monitor_of_classes,
          .check = check_text_classification,
          .draws_validation = true,
          .divides_models = true};
}

}  // namespace stretto
