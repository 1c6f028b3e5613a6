#include "tests/fuzz/mutate_json.h"

#include <array>
#include <cstdint>
#include <iterator>
#include <limits>
#include <vector>

#include "tests/fuzz/mutate.h"

#include "stretto/base/error.h"
#include "stretto/base/json.h"

namespace stretto::fuzz {
namespace {

using Json = nlohmann::ordered_json;

void collect(Json& json, std::vector<Json*>& nodes) {
  nodes.push_back(&json);
  if (!json.is_structured()) return;
  for (Json& child : json) collect(child, nodes);
}

Json other_value(std::mt19937_64& random) {
  static const std::array<Json, 16> values = {nullptr,
                                              true,
                                              "",
                                              "a",
                                              Json::array(),
                                              Json::object(),
                                              0.5,
                                              1e308,
                                              0,
                                              1,
                                              -1,
                                              int64_t{1} << 31,
                                              int64_t{1} << 40,
                                              std::numeric_limits<int64_t>::max(),
                                              std::numeric_limits<int64_t>::min(),
                                              std::numeric_limits<uint64_t>::max()};
  return values[random() % values.size()];
}

// A random child. REQUIRES: parent is not empty.
Json::iterator some_child(Json& parent, std::mt19937_64& random) {
  return std::next(parent.begin(), static_cast<std::ptrdiff_t>(random() % parent.size()));
}

void remove_child(Json& parent, std::mt19937_64& random) {
  if (parent.is_structured() && !parent.empty()) parent.erase(some_child(parent, random));
}

void repeat_child(Json& parent, std::mt19937_64& random) {
  if (!parent.is_structured() || parent.empty()) return;
  const auto chosen = some_child(parent, random);
  Json copy = *chosen;
  if (parent.is_array()) {
    parent.push_back(std::move(copy));
  } else {
    const std::string name = chosen.key() + "x";
    parent[name] = std::move(copy);
  }
}

void change_value(Json& value, std::mt19937_64& random) {
  if (value.is_number_integer() && random() % 4 != 0) {
    value = value.get<uint64_t>() + random() % 5 - 2;  // as unsigned: wraps around
  } else if (value.is_string() && random() % 2 == 0) {
    value = mutate(value.get<std::string>(), "ab", 64, random);
  } else {
    value = other_value(random);
  }
}

void change_once(Json& json, std::mt19937_64& random) {
  std::vector<Json*> nodes;
  collect(json, nodes);
  Json& node = *nodes[random() % nodes.size()];
  switch (random() % 6) {
    case 0:
      return remove_child(node, random);
    case 1:
      return repeat_child(node, random);
    case 2: {
      Json copy = *nodes[random() % nodes.size()];
      node = std::move(copy);
      return;
    }
    default:
      return change_value(node, random);
  }
}

}  // namespace

void change_json(Json& json, std::mt19937_64& random) {
  for (uint64_t left = 1 + random() % 4; left > 0; --left) change_once(json, random);
}

std::optional<Json> try_parse(const std::string& text) {
  try {
    [[maybe_unused]] const auto checked = parse_json(text, "input");  // its depth
    return Json::parse(text);
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string mutate_json(const std::string& text, std::mt19937_64& random) {
  std::optional<Json> json = try_parse(text);
  if (!json) return mutate(text, text, text.size() + 64, random);
  change_json(*json, random);
  return dump(*json);
}

}  // namespace stretto::fuzz
