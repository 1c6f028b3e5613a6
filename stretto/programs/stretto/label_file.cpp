#include "stretto/programs/stretto/label_file.h"

#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/ranges.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/strings.h"
#include "stretto/corpus/encoding.h"
#include "stretto/corpus/reader_format.h"
#include "stretto/corpus/tsv.h"

namespace stretto::cli {
namespace {

// GLUE's names of the label column, and those of run_glue and of stretto's predictions.jsonl.
const std::vector<std::string>& usual_names(LabelSide side) {
  static const std::vector<std::string> gold = {"gold",    "gold_label",   "label",
                                                "quality", "is_duplicate", "score"},
                                        predicted = {"prediction", "predicted", "label"};
  return side == LabelSide::gold ? gold : predicted;
}

std::unique_ptr<corpus::FieldReader> make_reader(std::string_view content,
                                                 const std::filesystem::path& path) {
  if (auto reader = corpus::reader_by_extension(content, path.string())) return reader;
  return std::make_unique<corpus::TsvReader>(content, path.string());
}

std::optional<size_t> find(const std::vector<std::string>& columns, const std::string& name) {
  const auto found = std::ranges::find(columns, lower_case(trim(name)));
  if (found == columns.end()) return std::nullopt;
  return static_cast<size_t>(found - columns.begin());
}

struct Choice {
  size_t label = 0;
  bool has_header = false;
};

Choice choose(const std::vector<std::string>& columns, const std::filesystem::path& path, LabelSide side,
              const std::string& asked) {
  const char* option = side == LabelSide::gold ? "--gold-column" : "--prediction-column";
  const auto number = parse_int(asked);
  if (number && *number >= 1 && *number <= std::ssize(columns)) {
    const auto& names = usual_names(side);
    const auto label = static_cast<size_t>(*number - 1);
    return {label, std::ranges::find(names, columns[label]) != names.end()};
  }
  if (!asked.empty()) {
    if (const auto found = find(columns, asked)) return {*found, true};
    throw ConfigError("{} {}: {} has no such column; the columns of its first line are {}", option, asked,
                      path.string(), fmt::join(columns, ", "));
  }
  for (const std::string& name : usual_names(side))
    if (const auto found = find(columns, name)) return {*found, true};
  if (columns.size() == 1) return {0, false};
  throw ConfigError("{}: none of its columns ({}) is called {}; name the column with {}", path.string(),
                    fmt::join(columns, ", "), fmt::join(usual_names(side), ", "), option);
}

}  // namespace

std::vector<std::string> read_label_file(const std::filesystem::path& path, LabelSide side,
                                         const std::string& column) {
  const MappedFile file(path);
  const std::string_view content = corpus::utf8_text(file.text(), path.string());
  const auto reader = make_reader(content, path);
  corpus::Fields fields;
  if (!reader->next(fields))
    throw DataError("{}: the file is empty; expected a label per row", path.string());
  std::vector<std::string> columns;
  for (const auto& value : fields.values) columns.push_back(lower_case(trim(value.value_or(""))));
  const Choice choice = choose(columns, path, side, column);
  const size_t index = choice.has_header ? find(columns, "index").value_or(columns.size()) : columns.size();
  std::vector<std::string> labels;
  bool more = !choice.has_header || reader->next(fields);
  for (; more; more = reader->next(fields)) {
    if (fields.values.size() != columns.size())
      throw DataError("{}:{}: {} columns; the first line has {}", path.string(), fields.line,
                      fields.values.size(), columns.size());
    const auto& value = fields.values[choice.label];
    if (!value || trim(*value).empty())
      throw DataError("{}:{}: the row has no label", path.string(), fields.line);
    if (index < columns.size() && parse_int(trim(fields.values[index].value_or(""))) != std::ssize(labels))
      throw DataError(
          "{}:{}: the index is {}, but this is row {}; rows must be in the order of the gold labels",
          path.string(), fields.line, fields.values[index].value_or("missing"), labels.size());
    labels.emplace_back(trim(*value));
  }
  return labels;
}

}  // namespace stretto::cli
