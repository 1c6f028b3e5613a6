#pragma once

#include <filesystem>

#include <nlohmann/json.hpp>

#include "stretto/base/files.h"

namespace stretto {

// metrics.jsonl: one JSON object a line, in the order things happened. Numbers that JSON cannot hold (NaN, infinity) are
// written as texts.
class MetricsLog {
 public:
  explicit MetricsLog(const std::filesystem::path& path) : file_(path) {}
  void write(nlohmann::ordered_json record);

 private:
  AppendFile file_;
};

}  // namespace stretto
