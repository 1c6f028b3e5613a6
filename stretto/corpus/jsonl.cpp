#include "stretto/corpus/jsonl.h"

#include "stretto/base/error.h"
#include "stretto/base/json.h"
#include "stretto/base/strings.h"
#include "stretto/corpus/tsv.h"

namespace stretto::corpus {
namespace {

constexpr size_t most_shown = 40;

std::string plain_value(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void add_list(const nlohmann::json& list, Fields& fields) {
  std::vector<std::string> values;
  for (const nlohmann::json& item : list) {
    if (item.is_structured() || item.is_null()) return;
    values.push_back(plain_value(item));
  }
  fields.lists[fields.values.size()] = std::move(values);
}

// Appends text, numbers and booleans as text; an absent value for null, lists and objects.
void add_value(const nlohmann::json& object, const std::string& key, Fields& fields) {
  const auto found = object.find(key);
  std::optional<std::string> value;
  if (found != object.end() && found->is_structured()) {
    std::string text = found->dump(-1, ' ', /*ensure_ascii=*/true);
    if (text.size() > most_shown) text = text.substr(0, most_shown) + "...";
    fields.nested[fields.values.size()] =
        fmt::format("{} ({})", found->is_array() ? "a list" : "an object", text);
    if (found->is_array()) add_list(*found, fields);
  } else if (found != object.end() && !found->is_null()) {
    value = plain_value(*found);
  }
  fields.values.push_back(std::move(value));
}

}  // namespace

bool JsonlReader::next_object() {
  while (!rest_.empty()) {
    const std::string_view line = take_line(rest_);
    ++line_;
    require_field_size(line.size(), name_, line_);
    if (trim(line).empty()) continue;
    if (trim(line).front() == '[') {
      throw DataError(
          "{}:{}: a JSON array; JSON Lines hold one object per line (`jq -c '.[]'` converts an array)", name_,
          line_);
    }
    object_ = parse_json(line, name_, /*max_depth=*/64, line_);
    if (!object_.is_object()) {
      throw DataError("{}:{}: found a JSON {}; expected an object", name_, line_, object_.type_name());
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
  fields.nested.clear();
  fields.lists.clear();
  for (const std::string& column : columns_) add_value(object_, column, fields);
  return true;
}

}  // namespace stretto::corpus
