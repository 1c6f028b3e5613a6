#include "stretto/compat/shell_names.h"

#include <algorithm>
#include <cctype>

namespace stretto::compat {
namespace {

bool is_of_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

}  // namespace

size_t name_size(std::string_view text) {
  size_t size = 0;
  while (size < text.size() && is_of_name(text[size])) ++size;
  return size > 0 && std::isdigit(static_cast<unsigned char>(text[0])) == 0 ? size : 0;
}

std::string short_text(std::string_view text) {
  constexpr size_t most = 40;
  return text.size() <= most ? std::string(text) : std::string(text.substr(0, most)) + "...";
}

std::vector<std::string> names_in(std::string_view inside) {
  std::vector<std::string> names;
  for (size_t at = 0; at < inside.size();) {
    size_t size = 0;
    while (at + size < inside.size() && is_of_name(inside[at + size])) ++size;
    const std::string name(inside.substr(at, size));
    if (name_size(name) > 0 && std::ranges::find(names, name) == names.end()) names.push_back(name);
    at += std::max<size_t>(1, size);
  }
  return names;
}

}  // namespace stretto::compat
