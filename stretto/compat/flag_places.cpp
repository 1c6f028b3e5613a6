#include "stretto/compat/flag_places.h"

#include "stretto/base/strings.h"

namespace stretto::compat {

std::string FlagPlaces::in(std::string text, const std::string& file) const {
  const std::string begin = file + ":";
  const auto digits_end = [&](size_t at) {
    return std::min(text.find_first_not_of("0123456789", at), text.size());
  };
  for (size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at + 1)) {
    const size_t line_begin = at + begin.size(), line_end = digits_end(line_begin);
    const auto line = parse_int(text.substr(line_begin, line_end - line_begin));
    const auto flag = line ? flags_.find(*line) : flags_.end();
    if (flag == flags_.end()) continue;
    const bool has_column =
        line_end < text.size() && text[line_end] == ':' && digits_end(line_end + 1) > line_end + 1;
    const size_t end = has_column ? digits_end(line_end + 1) : line_end;
    text.replace(at, end - at, flag->second);
  }
  return text;
}

}  // namespace stretto::compat
