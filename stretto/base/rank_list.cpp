#include "stretto/base/rank_list.h"

#include <fmt/format.h>

namespace stretto {

std::string rank_list(const std::vector<int>& ranks) {
  constexpr size_t shown = 8;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size() && i < shown; ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", ranks[i]);
  if (ranks.size() > shown) text += fmt::format(" and {} more", ranks.size() - shown);
  return text;
}

}  // namespace stretto
