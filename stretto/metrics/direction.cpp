#include "stretto/metrics/direction.h"

#include <algorithm>
#include <cmath>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"

namespace stretto::metrics {

const std::vector<std::string>& metric_names() {
  static const std::vector<std::string> names{"loss",
                                              "accuracy",
                                              "f1",
                                              "f1_macro",
                                              "f1_weighted",
                                              "f1_micro",
                                              "precision_macro",
                                              "precision_micro",
                                              "recall_macro",
                                              "recall_micro",
                                              "auroc",
                                              "average_precision",
                                              "perplexity",
                                              "bits_per_byte",
                                              "combined_score",
                                              "matthews_correlation",
                                              "precision",
                                              "recall",
                                              "exact_match",
                                              "exact",
                                              "HasAns_exact",
                                              "HasAns_f1",
                                              "NoAns_exact",
                                              "NoAns_f1",
                                              "best_exact",
                                              "best_f1",
                                              "pearson",
                                              "spearmanr"};
  return names;
}

Direction direction(std::string_view metric) {
  std::string_view name = metric.substr(metric.rfind('/') + 1);  // npos + 1 is 0
  constexpr std::string_view prefix = "eval_";
  if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  const auto& names = metric_names();
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    throw ConfigError("\"{}\" is not a metric{}; metrics are {}", metric, did_you_mean(name, names),
                      fmt::join(names, ", "));
  }
  return name == "loss" || name == "perplexity" || name == "bits_per_byte" ? Direction::lower
                                                                           : Direction::higher;
}

bool better(std::string_view metric, double a, double b) {
  const Direction improves = direction(metric);
  if (std::isnan(a) || std::isnan(b)) return !std::isnan(a);
  return improves == Direction::lower ? a < b : a > b;
}

}  // namespace stretto::metrics
