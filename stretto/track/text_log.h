#pragma once

#include <filesystem>
#include <optional>

#include "stretto/base/file_writer.h"
#include "stretto/track/tracker.h"

namespace stretto::track {

// Writes texts.jsonl, if the run writes texts: one JSON object per text, {"step", "name", "text"}. Bytes that
// are not UTF-8 become U+FFFD.
class TextLog : public Tracker {
 public:
  explicit TextLog(std::filesystem::path path) : path_(std::move(path)) {}
  std::string name() const override { return path_.string(); }
  void begin(const TrackedRun& run) override;
  void write(const Record&) override {}
  void write_text(int64_t step, const std::string& name, const std::string& markdown) override;

 private:
  std::filesystem::path path_;
  std::optional<AppendFile> file_;
};

}  // namespace stretto::track
