#pragma once

#include <filesystem>
#include <vector>

#include <nlohmann/json.hpp>

#include "stretto/base/weighted_mean.h"

namespace stretto::cli {

// The records of a file of JSON Lines. Throws IoError, DataError.
std::vector<nlohmann::ordered_json> read_records(const std::filesystem::path& file);

// Whether a record of metrics.jsonl is that of training steps; its loss is the mean over the steps since the record before it.
bool is_training_record(const nlohmann::ordered_json& record);

// The mean training loss over steps: that of the records added, each weighted by its steps.
class MeanLoss {
 public:
  void add(const nlohmann::ordered_json& record);
  bool known() const { return mean_.weight > 0; }
  double value() const { return known() ? mean_.mean() : 0; }
  void restart() { mean_ = {}; }

 private:
  WeightedMean mean_;  // by steps
  double last_step_ = 0;
};

}  // namespace stretto::cli
