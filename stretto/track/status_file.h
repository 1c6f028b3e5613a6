#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "stretto/base/progress_bar.h"
#include "stretto/track/tracker.h"

namespace stretto::track {

// Writes progress.json, the current state of a run for `stretto top`, at most twice per second.
//   {"state": "training", "host", "pid", "started", "updated": seconds since 1970, "step", "total_steps",
//    "epoch", "seconds_left", "values": {...}, "evaluation": {...}}
// state: training; waiting (evaluation, saving or loading); finished, stopped or failed. The file is replaced
// atomically but not durably, and its writes are not counted by file_faults, since they depend on the time.
// If it cannot be written, one warning is logged.
class StatusFile : public Tracker {
 public:
  explicit StatusFile(std::filesystem::path path) : path_(std::move(path)) {}
  std::string name() const override { return path_.string(); }
  void begin(const TrackedRun& run) override;
  void write(const Record& record) override;
  void step(const Record& record) override;
  void pause() override;
  void end(RunEnd how) override;

 private:
  using Clock = std::chrono::steady_clock;
  void save(const std::string& state);

  std::filesystem::path path_;
  nlohmann::ordered_json status_;
  std::optional<Record> last_;
  bool warned_ = false;
  Pace pace_;
  Clock::time_point saved_;
};

}  // namespace stretto::track
