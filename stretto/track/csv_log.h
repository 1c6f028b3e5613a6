#pragma once

#include <filesystem>

#include "stretto/track/tracker.h"

namespace stretto::track {

// Writes the records of `metrics` (metrics.jsonl) as CSV: one row per record, with the columns step, epoch
// and one per value, in the order of their first record; those of evaluations are prefixed with eval_. Cells
// without a value are empty. Throws IoError.
void write_metrics_csv(const std::filesystem::path& metrics, const std::filesystem::path& csv);

// Writes metrics.csv at the end of a run. `stretto runs export` writes it for a run that was killed.
class CsvLog : public Tracker {
 public:
  CsvLog(std::filesystem::path metrics, std::filesystem::path csv)
      : metrics_(std::move(metrics)), csv_(std::move(csv)) {}
  std::string name() const override { return csv_.string(); }
  void begin(const TrackedRun& run) override;
  void write(const Record&) override {}
  void end(RunEnd how) override;

 private:
  std::filesystem::path metrics_, csv_;
  bool begun_ = false;
};

}  // namespace stretto::track
