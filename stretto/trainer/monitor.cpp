#include "stretto/trainer/monitor.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/metrics/direction.h"

namespace stretto {
namespace {

std::string canonical(std::string metric) {
  if (metric.starts_with("eval_")) metric.erase(0, 5);
  return metric == "valid_loss" || metric == "val_loss" ? "loss" : metric;
}

bool direction_of(const std::string& section, const std::string& metric) {
  if (metric == "train_loss") return false;
  const auto& names = metrics::metric_names();
  if (std::ranges::find(names, metric) == names.end()) {
    throw ConfigError(
        "{0}.monitor: \"{1}\" is not a built-in metric{2}; for a metric of your own, set {0}.mode to max or min",
        section, metric, did_you_mean(metric, names));
  }
  return metrics::better(metric, 1, 0);
}

}  // namespace

Monitor::Monitor(std::string section, const std::string& metric, const std::string& mode)
    : section_(std::move(section)),
      metric_(canonical(metric)),
      larger_is_better_(mode == "auto" ? direction_of(section_, metric_) : mode == "max") {}

double Monitor::value(const Metrics& metrics) const {
  const auto found = metrics.find(metric_);
  if (found != metrics.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [name, value] : metrics) names.push_back(name);
  throw ConfigError("{}.monitor: the evaluation has no metric \"{}\"{}; available: {}", section_, metric_,
                    did_you_mean(metric_, names), fmt::join(names, ", "));
}

}  // namespace stretto
