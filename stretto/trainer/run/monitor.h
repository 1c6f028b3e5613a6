#pragma once

#include <string>
#include <vector>

#include "stretto/config/choices.h"
#include "stretto/trainer/records/logged_values.h"

namespace stretto {
struct Recipe;
}

namespace stretto::trainer {

// A metric of evaluations that a decision depends on, and whether a smaller or a larger value is better.
class Monitor {
 public:
  // `setting`: the setting that names the metric, for messages ("checkpoint.monitor"). `metric`: its name; a
  // prefix "eval_" is ignored, and valid_loss and val_loss mean loss. `mode`: automatic is min for loss and
  // train_loss, max for other built-in metrics. Throws ConfigError for another metric with automatic.
  Monitor(std::string setting, const std::string& metric, MetricMode mode);

  const std::string& metric() const { return metric_; }
  bool larger_is_better() const { return larger_is_better_; }

  // Whether `a` is better than `b` by more than `margin`. NaN never is.
  bool better(double a, double b, double margin = 0) const {
    return larger_is_better_ ? a - margin > b : a + margin < b;
  }

  // Throws ConfigError, with the available names, if it is missing.
  double value(const Metrics& metrics) const;
  // Like value(), for an evaluation of few samples, for which auroc may not be defined although it is for
  // all.
  void require_in_part(const Metrics& metrics) const;

 private:
  bool may_be_undefined() const;

  std::string setting_;
  std::string metric_;
  bool larger_is_better_;
};

// A setting that names a metric of evaluations: "checkpoint.monitor".
struct MonitoredSetting {
  std::string key;
  Monitor monitor;
};

// All of a recipe. Throws ConfigError for a metric whose better direction neither its name nor its mode
// tells.
std::vector<MonitoredSetting> monitored_settings(const Recipe& recipe);

// Throws ConfigError, before any work is done, for a metric in the recipe's settings whose better direction
// neither its name nor its mode tells, or that is not one of `possible`, which evaluations may have; empty:
// it is known only after the first one.
void require_metrics(const Recipe& recipe, const std::vector<std::string>& possible = {});

}  // namespace stretto::trainer
