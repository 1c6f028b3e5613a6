#include "stretto/text/characters.h"

#include "stretto/text/utf8.h"

namespace stretto::text {

Characters::Characters(std::string_view known) {
  std::string buffer;
  const std::string_view valid = replace_invalid_utf8(known, buffer);
  int32_t next = 1;
  for (size_t at = 0; at < valid.size(); ++next) ids_.try_emplace(next_code_point(valid, at), next);
}

void Characters::append_ids(std::string_view text, std::vector<int32_t>& out) const {
  std::string buffer;
  const std::string_view valid = replace_invalid_utf8(text, buffer);
  for (size_t at = 0; at < valid.size();) {
    const auto found = ids_.find(next_code_point(valid, at));
    out.push_back(found == ids_.end() ? 0 : found->second);
  }
}

std::string slice_code_points(std::string_view text, uint32_t begin, uint32_t end) {
  std::string buffer;
  const std::string_view valid = replace_invalid_utf8(text, buffer);
  size_t at = 0;
  const auto skip = [&](uint32_t count) {
    for (; count > 0 && at < valid.size(); --count) next_code_point(valid, at);
    return at;
  };
  const size_t from = skip(begin);
  return std::string(valid.substr(from, skip(end - begin) - from));
}

}  // namespace stretto::text
