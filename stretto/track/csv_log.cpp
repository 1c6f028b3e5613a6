#include "stretto/track/csv_log.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stretto/base/number_text.h"
#include "stretto/base/strings.h"

namespace stretto {
namespace {

const std::vector<std::string> first_columns = {"step", "epoch"};

std::string column_of(const Record& record, const std::string& name) {
  return (record.evaluation ? "eval_" : "") + name;
}

// Names are quoted where they would be taken for several cells; values are numbers.
std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char letter : text)
    quoted += letter == '"' ? std::string("\"\"") : std::string(1, letter == '\n' ? ' ' : letter);
  return quoted + "\"";
}

std::string header(const std::vector<std::string>& columns) {
  std::vector<std::string> cells;
  for (const std::string& column : columns) cells.push_back(cell(column));
  return fmt::format("{}\n", fmt::join(cells, ","));
}

// The cells of a line; a quoted one may hold commas.
std::vector<std::string> parse_cells(std::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      cells.back() += line[i++];
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += line[i];
    }
  }
  return cells;
}

}  // namespace

void CsvLog::begin(const TrackedRun& run) {
  run_ = run;
  file_.reset();
  columns_ = first_columns;
  std::string kept;
  if (path_.has_parent_path()) make_folders(path_.parent_path());
  if (run.steps_done > 0 && std::filesystem::exists(path_)) {
    const std::string text = read_file(path_);
    const auto lines = split(text, '\n');
    if (lines[0].starts_with("step,epoch")) columns_ = parse_cells(lines[0]);
    for (size_t i = 1; i + 1 < lines.size(); ++i) {  // what follows the last newline is a truncated row
      const auto step = parse_int(lines[i].substr(0, lines[i].find(',')));
      if (step && *step <= run.steps_done) kept.append(lines[i]).append("\n");
    }
  }
  write_file_atomic(path_, header(columns_) + kept);
  file_.emplace(path_);
}

void CsvLog::add_columns(const Record& record) {
  std::vector<std::string> columns = columns_;
  for (const auto& [name, value] : record.values) {
    if (std::ranges::find(columns, column_of(record, name)) == columns.end())
      columns.push_back(column_of(record, name));
  }
  if (columns.size() == columns_.size()) return;
  const std::string more(columns.size() - columns_.size(), ',');
  const std::string text = read_file(path_);
  const auto lines = split(text, '\n');
  std::string content = header(columns);
  for (size_t i = 1; i + 1 < lines.size(); ++i) content.append(lines[i]).append(more).append("\n");
  write_file_atomic(path_, content);
  file_.emplace(path_);
  columns_ = std::move(columns);
}

void CsvLog::write(const Record& record) {
  if (!file_) begin(run_);  // retry: begin() has failed
  add_columns(record);
  std::vector<std::string> cells(columns_.size());
  cells[0] = std::to_string(record.step);
  cells[1] = number_text(record.epoch);
  for (const auto& [name, value] : record.values) {
    const auto column = std::ranges::find(columns_, column_of(record, name)) - columns_.begin();
    cells[static_cast<size_t>(column)] = number_text(value);
  }
  file_->write(fmt::format("{}\n", fmt::join(cells, ",")));
}

}  // namespace stretto
