#include "stretto/trainer/run/monitor.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/config/model_rule.h"
#include "stretto/config/recipe.h"
#include "stretto/metrics/direction.h"

namespace stretto::trainer {
namespace {

std::string canonical(std::string metric) {
  if (metric.starts_with("eval_")) metric.erase(0, 5);
  return metric == "valid_loss" || metric == "val_loss" ? "loss" : metric;
}

bool direction_of(const std::string& setting, const std::string& metric) {
  if (metric == "train_loss") return false;
  const auto& names = metrics::metric_names();
  if (std::ranges::find(names, metric.substr(metric.rfind('/') + 1)) == names.end()) {
    const std::string name = setting.substr(setting.rfind(' ') + 1);  // without the place where it was set
    const std::string advice = name.ends_with(".monitor")
                                   ? fmt::format("set {}.mode to max or min", name.substr(0, name.find('.')))
                                   : fmt::format("write best_{0}:max or best_{0}:min", metric);
    throw ConfigError("{}: \"{}\" is not a built-in metric{}; for a metric of your own, {}", setting, metric,
                      did_you_mean(metric, names), advice);
  }
  return metrics::better(metric, 1, 0);
}

}  // namespace

Monitor::Monitor(std::string setting, const std::string& metric, MetricMode mode)
    : setting_(std::move(setting)),
      metric_(canonical(metric)),
      larger_is_better_(mode == MetricMode::automatic ? direction_of(setting_, metric_)
                                                      : mode == MetricMode::max) {}

bool Monitor::may_be_undefined() const { return metric_.substr(metric_.rfind('/') + 1) == "auroc"; }

void Monitor::require_in_part(const Metrics& metrics) const {
  if (!may_be_undefined()) value(metrics);
}

double Monitor::value(const Metrics& metrics) const {
  const auto found = metrics.find(metric_);
  if (found != metrics.end()) return found->second;
  if (may_be_undefined() && metrics.contains("average_precision")) {
    throw ConfigError(
        "{}: {} is not defined on the evaluated samples, as a class has none or all of them; evaluate samples of all classes, or monitor average_precision",
        setting_, metric_);
  }
  std::vector<std::string> names;
  for (const auto& [name, value] : metrics) names.push_back(name);
  if (names.empty()) {
    throw ConfigError("{}: the evaluation has no metric \"{}\", nor any other; log it in validation_step",
                      setting_, metric_);
  }
  throw ConfigError("{}: the evaluation has no metric \"{}\"{}; available: {}", setting_, metric_,
                    did_you_mean(metric_, names), fmt::join(names, ", "));
}

std::vector<MonitoredSetting> monitored_settings(const Recipe& recipe) {
  std::vector<MonitoredSetting> found;
  const auto add = [&](const char* key, const std::string& metric, MetricMode mode) {
    found.push_back({key, Monitor(recipe.origins.label(key), metric, mode)});
  };
  const CheckpointConfig& checkpoint = recipe.checkpoint;
  if (checkpoint.monitor) add("checkpoint.monitor", *checkpoint.monitor, checkpoint.mode);
  if (const auto& metric = recipe.early_stopping.monitor)
    add("early_stopping.monitor", *metric, recipe.early_stopping.mode);
  for (const std::string& text : checkpoint.save_models) {
    const ModelRule rule = parse_model_rule(text);
    add("checkpoint.save_models", rule.metric, rule.limits.mode);
  }
  const SchedulerConfig& scheduler = recipe.scheduler;
  if (scheduler.type != "ReduceLROnPlateau" && scheduler.type != "AnnealOnPlateau") return found;
  if (const auto metric = scheduler.value("monitor"); metric.is_string())
    add("scheduler.monitor", metric.get<std::string>(),
        settings::OneOf<MetricMode>(scheduler.value("mode").get<std::string>()));
  return found;
}

void require_metrics(const Recipe& recipe, const std::vector<std::string>& possible) {
  for (const auto& [key, monitor] : monitored_settings(recipe)) {
    const std::string& name = monitor.metric();
    const bool is_of_training = name == "train_loss" && key != "checkpoint.monitor";
    if (possible.empty() || is_of_training || std::ranges::find(possible, name) != possible.end()) continue;
    throw ConfigError("{}: evaluations of this task have no metric \"{}\"{}; they have {}",
                      recipe.origins.label(key), name, did_you_mean(name, possible),
                      fmt::join(possible, ", "));
  }
}

}  // namespace stretto::trainer
