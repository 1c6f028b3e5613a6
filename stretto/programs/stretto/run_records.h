#pragma once

#include <filesystem>
#include <vector>

#include <nlohmann/json.hpp>

#include "stretto/base/weighted_mean.h"

namespace stretto::cli {

// Reads the records of a file of JSON Lines. Throws IoError, DataError.
std::vector<nlohmann::ordered_json> read_records(const std::filesystem::path& file);

// Whether a record of metrics.jsonl belongs to training; its loss is the mean over the steps since the
// previous record.
bool is_training_record(const nlohmann::ordered_json& record);

// The mean training loss of the added records, weighted by their numbers of steps.
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
