#pragma once

#include <optional>
#include <string>

#include "stretto/config/choices.h"
#include "stretto/settings/one_of.h"

namespace stretto::settings {
struct Rule;
}

namespace stretto {

// The conditions under which Trainer::register_model_saving saves a model.
struct SavingLimits {
  std::optional<double> saving_above = {};                   // only metrics above this
  std::optional<double> saving_below = {};                   // only metrics below this
  settings::OneOf<MetricMode> mode = MetricMode::automatic;  // as checkpoint.mode
};

// A model that is saved in addition to model/: the best one by `metric` within the limits.
struct ModelRule {
  std::string name;    // of its folder in models/: "best_accuracy"
  std::string metric;  // "accuracy"
  SavingLimits limits;
};

// Parses "best_accuracy" or "accuracy": `metric` is accuracy. best_valid_loss is the evaluation's loss,
// best_train_loss the mean loss of the steps since the last evaluation. Throws ConfigError for a name that
// cannot be a folder's.
ModelRule make_model_rule(const std::string& name, const SavingLimits& limits = {});

// Parses an element of checkpoint.save_models: "best_accuracy", "best_f1>0.5", "best_valid_loss<0.7", and,
// for a metric that is not built in, "best_quality:max". Throws ConfigError for text of another form.
ModelRule parse_model_rule(const std::string& text);
settings::Rule model_rule_form();

}  // namespace stretto
