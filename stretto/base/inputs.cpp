#include "stretto/base/inputs.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace stretto {
namespace {

constexpr size_t max_named_differences = 8;

using InputsByName = std::map<std::string, Input>;
using Namer = std::function<std::string(const std::vector<size_t>&)>;

// Returns "" if all are equal.
std::string difference(const std::string& name, const std::vector<InputsByName>& members, const Namer& who) {
  struct Found {
    std::string value, place;
    std::vector<size_t> members;
  };
  std::vector<Found> found;
  for (size_t member = 0; member < members.size(); ++member) {
    const auto input = members[member].find(name);
    const std::string value = input == members[member].end() ? "not given" : input->second.value;
    const auto same = std::ranges::find(found, value, &Found::value);
    if (same != found.end()) {
      same->members.push_back(member);
    } else {
      found.push_back({value, input == members[member].end() ? "" : input->second.place, {member}});
    }
  }
  if (found.size() == 1) return "";
  std::string text = name + ":";
  for (const Found& group : found) {
    if (&group != found.data()) text += ',';
    text += fmt::format(" {} on {}", group.value, who(group.members));
    if (!group.place.empty()) text += fmt::format(" ({})", group.place);
  }
  return text;
}

}  // namespace

std::string differences(const std::vector<std::vector<Input>>& members, const Namer& who) {
  std::vector<InputsByName> all;
  std::map<std::string, int> names;
  for (const auto& inputs : members) {
    InputsByName& by_name = all.emplace_back();
    for (const Input& input : inputs) {
      by_name[input.name] = input;
      names[input.name] += 1;
    }
  }
  std::string text;
  size_t count = 0;
  for (const auto& [name, ignored] : names) {
    const std::string line = difference(name, all, who);
    if (!line.empty() && ++count <= max_named_differences) text += "\n  " + line;
  }
  if (count > max_named_differences) text += fmt::format("\n  and {} more", count - max_named_differences);
  return text;
}

std::string numbered(const std::string& noun, const std::vector<size_t>& numbers) {
  std::string text = noun + (numbers.size() == 1 ? " " : "s ");
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) text += i + 1 == numbers.size() ? " and " : ", ";
    text += std::to_string(numbers[i]);
  }
  return text;
}

}  // namespace stretto
