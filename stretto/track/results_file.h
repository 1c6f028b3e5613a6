#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "stretto/track/tracker.h"

namespace stretto::track {

// A measurement of a run after a step, for results.json.
struct Measurement {
  std::string name;
  double value = 0;
  std::string units;                                             // "seq/s", "minutes", or none
  nlohmann::ordered_json at = nlohmann::ordered_json::object();  // "Epoch", "Global step" and the like
};

// Appends measurements to a file in the layout of the training scripts of NeuronxDistributed:
// {"results": {"parameters": {...}, "metrics": [{"MetricName", "MeasuredValue", "Units", "Timestamp",
// "AdditionalData"}, ...]}}. Throws IoError, also if the file has another layout.
void add_measurements(const std::filesystem::path& file, const std::vector<Measurement>& measurements);

// Writes loss and throughput after each epoch, and at the end of the run or of this part of it the final
// loss, the time, and the mean and the largest throughput. A resumed run continues the file.
class ResultsFile : public Tracker {
 public:
  explicit ResultsFile(std::filesystem::path file) : file_(std::move(file)) {}
  std::string name() const override { return file_.string(); }
  void begin(const TrackedRun& run) override;
  void write(const Record& record) override;
  void step(const Record& record) override;
  void end(RunEnd how) override;

 private:
  nlohmann::ordered_json position(int64_t epoch) const;

  std::filesystem::path file_;
  TrackedRun run_;
  Record last_;  // of a training step
  std::optional<std::chrono::steady_clock::time_point> begun_;
  std::optional<double> loss_;
  std::vector<double> throughputs_;  // of all steps that have one
  int64_t epochs_written_ = 0;
};

}  // namespace stretto::track
