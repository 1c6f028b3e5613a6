#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include "stretto/base/files.h"
#include "stretto/base/strings.h"

namespace stretto::trainer {

// The records that a run logged, in order. `run`: its output folder.
inline std::vector<nlohmann::json> records_of(const std::filesystem::path& run) {
  std::vector<nlohmann::json> records;
  const std::string text = read_file(run / "metrics.jsonl");
  for (const auto line : split(text, '\n')) {
    if (!line.empty()) records.push_back(nlohmann::json::parse(line));
  }
  return records;
}

}  // namespace stretto::trainer
