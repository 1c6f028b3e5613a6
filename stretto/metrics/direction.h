#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stretto::metrics {

enum class Direction { lower, higher };

// The names that a run can be judged by.
const std::vector<std::string>& metric_names();

// Which way a metric improves: "loss" falls, scores rise. An "eval_" before the name is ignored, as
// transformers writes it. Throws ConfigError for a name that is not known, with the one it may have meant.
Direction direction(std::string_view metric);

// Whether the value `a` of `metric` is an improvement on `b`. NaN never is one; every number improves on NaN.
bool better(std::string_view metric, double a, double b);

}  // namespace stretto::metrics
