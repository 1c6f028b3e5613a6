#include "stretto/corpus/tsv.h"

#include "stretto/base/strings.h"

namespace stretto::corpus {

std::string_view take_line(std::string_view& rest) {
  const size_t end = rest.find('\n');
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

bool TsvReader::next(Fields& fields) {
  while (!rest_.empty()) {
    const std::string_view line = take_line(rest_);
    ++line_;
    if (line.empty()) continue;
    require_field_size(line.size(), name_, line_);
    fields.line = line_;
    fields.values.clear();
    for (const std::string_view value : split(line, '\t')) fields.values.emplace_back(value);
    return true;
  }
  return false;
}

}  // namespace stretto::corpus
