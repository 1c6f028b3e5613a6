#include "stretto/base/json.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/strings.h"

namespace stretto {
namespace {

constexpr size_t max_bytes = size_t{256} << 20;  // parsed values need many times the memory of the text

// The maximum nesting depth of brackets outside strings, found without recursion.
int nesting_depth(std::string_view text) {
  int depth = 0;
  int deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

// nlohmann's message without its prefix "[name] parse error at line 1, column 2: " and without the quoted
// source, which may be long and not UTF-8.
std::string reason(std::string_view what) {
  const size_t begin = what.find(": ");
  if (begin != std::string_view::npos) what.remove_prefix(begin + 2);
  return std::string(what.substr(0, what.find("; last read: ")));
}

}  // namespace

nlohmann::json parse_json(std::string_view text, const std::string& name, int max_depth, int64_t first_line) {
  if (text.size() > max_bytes) {
    throw DataError("{}: {} MiB of JSON; expected at most {} MiB", name, text.size() >> 20, max_bytes >> 20);
  }
  if (nesting_depth(text) > max_depth) {
    throw DataError("{}:{}: JSON is nested deeper than {} levels", name, first_line, max_depth);
  }
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    const std::string_view before =
        text.substr(0, std::min(text.size(), error.byte > 0 ? error.byte - 1 : 0));
    const auto line = first_line + std::count(before.begin(), before.end(), '\n');
    const size_t column = before.size() - (before.rfind('\n') + 1) + 1;
    throw DataError("{}:{}:{}: not valid JSON: {}", name, line, column, reason(error.what()));
  } catch (const nlohmann::json::out_of_range& error) {  // a number beyond the range of double
    throw DataError("{}:{}: not valid JSON: {}", name, first_line, reason(error.what()));
  }
}

std::optional<int64_t> whole_number(const nlohmann::json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX) return std::nullopt;
  return value.get<int64_t>();
}

void each_json_line(
    std::string_view text,
    const std::function<void(std::string_view line, const nlohmann::ordered_json& object)>& take) {
  for (const std::string_view line : split(text, '\n')) {
    const auto object = nlohmann::ordered_json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (object.is_object()) take(line, object);
  }
}

nlohmann::json read_json(const std::filesystem::path& path) {
  const MappedFile file(path);
  return parse_json(file.text(), path.string());
}

}  // namespace stretto
