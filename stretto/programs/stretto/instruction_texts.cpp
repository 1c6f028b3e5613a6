#include "stretto/programs/stretto/instruction_texts.h"

#include <set>

#include <fmt/ranges.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/json.h"
#include "stretto/base/strings.h"
#include "stretto/programs/stretto/split_lines.h"

namespace stretto::cli {
namespace {

constexpr size_t test_records = 8;  // as in the script

// A text of a record; "" if it has none.
std::string part_of(const nlohmann::json& record, const char* key, const std::string& place) {
  const auto found = record.find(key);
  if (found == record.end() || found->is_null()) return "";
  if (!found->is_string()) throw DataError("{}: {} is {}; expected a text", place, key, found->dump());
  return found->get<std::string>();
}

std::string text_of(const nlohmann::json& record, const std::string& place) {
  if (!record.is_object() || !record.contains("instruction") || !record.contains("response"))
    throw DataError("{}: expected an object with \"instruction\" and \"response\"", place);
  const std::string context = part_of(record, "context", place);
  return "### Instruction\n" + part_of(record, "instruction", place) +
         (context.empty() ? "" : "\n### Context\n" + context) + "\n### Answer\n" +
         part_of(record, "response", place);
}

}  // namespace

void write_instruction_texts(const compat::InstructionFile& file) {
  const MappedFile mapped(file.path);
  std::vector<std::string> texts;
  std::set<std::string> categories;
  int64_t number = 0;
  for (const std::string_view line : split(mapped.text(), '\n')) {
    ++number;
    if (trim(line).empty()) continue;
    const std::string place = fmt::format("{}:{}", file.path.string(), number);
    const nlohmann::json record = parse_json(line, file.path.string(), 64, number);
    const std::string text = text_of(record, place), category = part_of(record, "category", place);
    categories.insert(category);
    if (file.category.empty() || category == file.category)
      texts.push_back(nlohmann::json({{"text", text}}).dump() + "\n");
  }
  if (texts.size() <= test_records) {
    const std::vector<std::string> known(categories.begin(), categories.end());
    throw ConfigError(
        "--task {}: {} has {} of this category; expected more than {} records. Its categories are {}",
        file.category, file.path.string(), counted(std::ssize(texts), "record"), test_records,
        fmt::join(known, ", "));
  }
  std::string train, test;
  for (size_t i = 0; i < texts.size(); ++i) {
    // The middle of each of eight equal parts is for the test.
    const size_t part = i * test_records / texts.size();
    const bool tested = i == (2 * part + 1) * texts.size() / (2 * test_records);
    (tested ? test : train) += texts[i];
  }
  make_folders(file.train.parent_path());
  write_if_changed(file.train, train);
  write_if_changed(file.test, test);
}

}  // namespace stretto::cli
