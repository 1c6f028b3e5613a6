#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "stretto/base/file_writer.h"
#include "stretto/track/tracker.h"

namespace stretto::track {

// The lines of a file of JSON records that a run keeps when it begins (Tracker::begin), by their "step";
// without a truncated last line.
std::string records_until(const std::filesystem::path& path, const TrackedRun& run);

// Writes metrics.jsonl, which every run has: one JSON object per line, in chronological order:
//   {"step", "epoch", "time": seconds since 1970, NAME: VALUE, ...}
// Values of evaluations are prefixed with eval_. Numbers that JSON cannot represent (NaN, infinity) are
// written as strings. Version 0.1 wrote no time.
class MetricsLog : public Tracker {
 public:
  explicit MetricsLog(std::filesystem::path path) : path_(std::move(path)) {}
  std::string name() const override { return path_.string(); }
  void begin(const TrackedRun& run) override;
  void write(const Record& record) override;

 private:
  std::filesystem::path path_;
  TrackedRun run_;
  std::optional<AppendFile> file_;
};

}  // namespace stretto::track
