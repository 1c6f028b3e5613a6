#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stretto::metrics {

enum class Direction { lower, higher };

// The built-in metrics, for checkpoint.monitor.
const std::vector<std::string>& metric_names();

// Whether lower or higher values of a metric are better: lower for "loss" and "perplexity", higher for
// scores. A leading name of a set of samples ("hard/accuracy") and transformers' prefix "eval_" are ignored.
// Throws ConfigError with a suggestion for an unknown name.
Direction direction(std::string_view metric);

// Whether the value `a` of `metric` is better than `b`. NaN never is; any number is better than NaN.
bool better(std::string_view metric, double a, double b);

}  // namespace stretto::metrics
