#include "stretto/data/jsonl.h"

#include "stretto/base/error.h"
#include "stretto/base/json.h"
#include "stretto/base/strings.h"
#include "stretto/data/tsv.h"

namespace stretto::data {
namespace {

// Text, numbers and booleans as a text file would write them; nothing for null, arrays and objects.
std::optional<std::string> plain_value(const nlohmann::json& object, const std::string& key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null() || found->is_structured()) return std::nullopt;
  return found->is_string() ? found->get<std::string>() : found->dump();
}

}  // namespace

bool JsonlReader::next_object() {
  while (!rest_.empty()) {
    const std::string_view line = take_line(rest_);
    ++line_;
    if (trim(line).empty()) continue;
    if (trim(line).front() == '[') {
      throw DataError(
          "{}:{}: a JSON array; JSON Lines hold one object a line (`jq -c '.[]'` rewrites an array so)",
          name_, line_);
    }
    object_ = parse_json(line, name_, /*max_depth=*/64, line_);
    if (!object_.is_object()) {
      throw DataError("{}:{}: a JSON {} where an object is needed", name_, line_, object_.type_name());
    }
    return true;
  }
  return false;
}

bool JsonlReader::next(Fields& fields) {
  if (!header_given_) {
    if (!next_object()) return false;
    header_given_ = object_waits_ = true;
    fields.line = line_;
    fields.values.clear();
    for (const auto& [key, value] : object_.items()) {
      columns_.push_back(key);
      fields.values.emplace_back(key);
    }
    return true;
  }
  if (!object_waits_ && !next_object()) return false;
  object_waits_ = false;
  fields.line = line_;
  fields.values.clear();
  for (const std::string& column : columns_) fields.values.push_back(plain_value(object_, column));
  return true;
}

}  // namespace stretto::data
