#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "stretto/base/files.h"
#include "stretto/track/tracker.h"

namespace stretto {

// metrics.csv: one row per record, with the columns step, epoch and one per value; those of evaluations are prefixed
// with eval_. Cells without a value are empty. A record with a new value adds a column, for which the file is written
// again.
class CsvLog : public Tracker {
 public:
  explicit CsvLog(std::filesystem::path path) : path_(std::move(path)) {}
  std::string name() const override { return path_.string(); }
  void begin(const TrackedRun& run) override;
  void write(const Record& record) override;

 private:
  void add_columns(const Record& record);

  std::filesystem::path path_;
  TrackedRun run_;
  std::vector<std::string> columns_;
  std::optional<AppendFile> file_;
};

}  // namespace stretto
