#include "stretto/track/csv_log.h"

#include <algorithm>
#include <vector>

#include <fmt/ranges.h>

#include "stretto/base/files.h"
#include "stretto/base/json.h"
#include "stretto/base/metric_value.h"
#include "stretto/base/number_text.h"

namespace stretto::track {
namespace {

// Quotes a name that would be parsed as several cells; values are numbers.
std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char letter : text)
    quoted += letter == '"' ? std::string("\"\"") : std::string(1, letter == '\n' ? ' ' : letter);
  return quoted + "\"";
}

}  // namespace

void write_metrics_csv(const std::filesystem::path& metrics, const std::filesystem::path& csv) {
  const std::string text = read_if_exists(metrics);
  std::vector<std::string> columns = {"step", "epoch"};
  each_json_line(text, [&](auto, const auto& record) {
    for (const auto& [name, value] : record.items()) {
      if (name != "time" && std::ranges::find(columns, name) == columns.end()) columns.push_back(name);
    }
  });
  std::vector<std::string> cells;
  for (const std::string& column : columns) cells.push_back(cell(column));
  std::string rows = fmt::format("{}\n", fmt::join(cells, ","));
  each_json_line(text, [&](auto, const auto& record) {
    for (size_t i = 0; i < columns.size(); ++i) {
      const auto found = record.find(columns[i]);
      const auto value = found == record.end() ? std::nullopt : metric_of_json(*found);
      cells[i] = value ? number_text(*value) : "";
    }
    rows += fmt::format("{}\n", fmt::join(cells, ","));
  });
  if (csv.has_parent_path()) make_folders(csv.parent_path());
  write_file_atomic(csv, rows);
}

// Removes the file of an earlier run, which could be mistaken for that of this run.
void CsvLog::begin(const TrackedRun& run) {
  begun_ = true;
  std::error_code missing;
  if (run.steps_done == 0) std::filesystem::remove(csv_, missing);
}

void CsvLog::end(RunEnd) {
  if (begun_) write_metrics_csv(metrics_, csv_);
}

}  // namespace stretto::track
