#include "stretto/programs/stretto/search_space.h"

#include <algorithm>
#include <cmath>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/base/philox.h"
#include "stretto/base/strings.h"

namespace stretto::cli {
namespace {

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  throw ConfigError(
      "--param {}: {}; expected NAME=log:LOW:HIGH, NAME=uniform:LOW:HIGH, NAME=int:LOW:HIGH or NAME=choice:A,B,C, such as optimizer.lr=log:1e-5:1e-3",
      text, why);
}

// Uniform in [0, 1), with the 53 bits of a double.
double fraction(uint64_t seed, int64_t trial, const std::string& name) {
  const uint64_t which = hash64(name);
  const auto words = philox({static_cast<uint32_t>(trial), static_cast<uint32_t>(trial >> 32),
                             static_cast<uint32_t>(which), static_cast<uint32_t>(which >> 32)},
                            seed);
  const uint64_t bits = (static_cast<uint64_t>(words[0]) << 32 | words[1]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

SearchParameter with_limits(SearchParameter parameter, const std::vector<std::string_view>& parts,
                            const std::string& text) {
  if (parts.size() != 3)
    refuse(text,
           counted(static_cast<int64_t>(parts.size()) - 1, "limit") + " after " + std::string(parts[0]));
  const auto low = parse_double(parts[1]), high = parse_double(parts[2]);
  if (!low || !high || !std::isfinite(*low) || !std::isfinite(*high)) refuse(text, "a limit is not a number");
  if (*low >= *high) refuse(text, "the first limit is not below the second");
  parameter.low = *low;
  parameter.high = *high;
  if (parameter.kind == SearchParameter::Kind::log && *low <= 0) refuse(text, "log needs limits above 0");
  const bool whole = *low == std::trunc(*low) && *high == std::trunc(*high);
  if (parameter.kind == SearchParameter::Kind::integer && !whole) refuse(text, "int needs whole limits");
  return parameter;
}

}  // namespace

std::string SearchParameter::draw(uint64_t seed, int64_t trial) const {
  const double at = fraction(seed, trial, name);
  switch (kind) {
    case Kind::log:
      return fmt::format("{:.6g}", low * std::pow(high / low, at));
    case Kind::uniform:
      return fmt::format("{:.6g}", low + (high - low) * at);
    case Kind::integer:
      return fmt::format("{:.0f}", std::min(high, low + std::floor((high - low + 1) * at)));
    case Kind::choice:
      break;
  }
  return values[static_cast<size_t>(at * static_cast<double>(values.size()))];
}

SearchParameter parse_search_parameter(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) refuse(text, "there is no NAME=");
  SearchParameter parameter{.name = text.substr(0, equals)};
  const std::string_view rest = std::string_view(text).substr(equals + 1);
  const auto parts = split(rest, ':');
  if (parts[0] == "choice") {
    parameter.kind = SearchParameter::Kind::choice;
    const std::string_view list = rest.substr(std::min(rest.size(), parts[0].size() + 1));
    for (const std::string_view value : split(list, ',')) parameter.values.emplace_back(value);
    if (std::ranges::any_of(parameter.values, &std::string::empty)) refuse(text, "a value is empty");
    return parameter;
  }
  const std::vector<std::pair<std::string_view, SearchParameter::Kind>> kinds = {
      {"log", SearchParameter::Kind::log},
      {"uniform", SearchParameter::Kind::uniform},
      {"int", SearchParameter::Kind::integer}};
  const auto kind =
      std::ranges::find(kinds, parts[0], &std::pair<std::string_view, SearchParameter::Kind>::first);
  if (kind == kinds.end()) refuse(text, fmt::format("\"{}\" is not a distribution", parts[0]));
  parameter.kind = kind->second;
  return with_limits(std::move(parameter), {parts.begin(), parts.end()}, text);
}

}  // namespace stretto::cli
