#pragma once

#include <map>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "stretto/base/weighted_mean.h"
#include "stretto/trainer/api/metric.h"
#include "stretto/trainer/api/step_context.h"

namespace stretto::trainer {

// A value of one step.
struct LoggedValue {
  double value = 0;
  double weight = 1;  // in the mean; 0: the value is ignored, also in a sum
  LogReduction reduction = LogReduction::mean;
  bool hidden = false;  // not for the progress line
};

// Weighted means and sums of named values over a window of steps: each rank adds its own values, rank 0
// returns the results.
class LoggedValues {
 public:
  // Throws Error if the weight is negative or not finite, and ConfigError if the window has the name with
  // another reduction.
  void add(const std::string& name, const LoggedValue& logged);

  // Adds all values of `other`.
  void add(const LoggedValues& other);

  bool empty() const { return values_.empty(); }

  // Moves the values of all ranks of Axes::data to the first of them. Collective.
  void collect(const Mesh& mesh);

  // The names of hidden values.
  std::set<std::string> hidden() const;

  // Returns the means and sums and clears the window.
  Metrics take();

  // The local sums: on rank 0 after collect(), those of all ranks.
  nlohmann::json to_json() const;
  void from_json(const nlohmann::json& values);

 private:
  struct Value {
    WeightedMean mean = {};
    LogReduction reduction = LogReduction::mean;
    bool hidden = false;
  };
  std::map<std::string, Value> values_;
};

// Means and sums, and the names of those that the progress line does not show.
struct LoggedMeans {
  Metrics means;
  std::set<std::string> hidden;
};

// The values that the steps of a run have logged: since the last record, and since the epoch began.
struct LoggedWindows {
  LoggedValues record;
  LoggedValues epoch;
};

}  // namespace stretto::trainer
