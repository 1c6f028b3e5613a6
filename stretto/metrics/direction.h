#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stretto::metrics {

enum class Direction { lower, higher };

// The built-in metrics, for checkpoint.monitor.
const std::vector<std::string>& metric_names();

// Whether lower or higher values of a metric are better: lower for "loss" and "perplexity", higher for scores. The name of a set of samples
// in front ("hard/accuracy") is ignored, and a prefix "eval_", as in transformers. Throws ConfigError with a suggestion for an unknown name.
Direction direction(std::string_view metric);

// Whether the value `a` of `metric` is an improvement on `b`. NaN never is; any number improves on NaN.
bool better(std::string_view metric, double a, double b);

}  // namespace stretto::metrics
