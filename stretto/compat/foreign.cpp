#include "stretto/compat/foreign.h"

#include <map>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"

namespace stretto::compat {
namespace {

std::string as_override(const ForeignSetting& setting) { return setting.name + "=" + setting.value; }

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

// Makes errors name the place in the foreign file instead of the override.
template <class Read>
Recipe with_places(const ForeignConfig& foreign, const Read& read) {
  try {
    return read();
  } catch (const ConfigError& error) {
    std::string message = error.what();
    for (const ForeignSetting& setting : foreign.settings)
      replace_all(message, "--set " + as_override(setting), setting.place);
    throw ConfigError("{}", message);
  }
}

// The resolved value of a setting: the kind of a strategy, a number.
nlohmann::json meaning(const Recipe& recipe, const std::string& name) {
  const nlohmann::json all = shared_settings(recipe);
  const auto found = all.find(name);
  return found == all.end() ? nlohmann::json(nullptr) : *found;
}

// REQUIRES: the recipe sets it.
void require_same(const Recipe& recipe, const Recipe& other, const ForeignSetting& setting) {
  const nlohmann::json ours = meaning(recipe, setting.name), theirs = meaning(other, setting.name);
  if (ours == theirs) return;
  throw ConfigError("{}: it sets {}: {}, but {} is {}; remove one of them", setting.place, setting.name,
                    theirs.dump(), recipe.origins.mention(setting.name), ours.dump());
}

bool same_value(const std::string& a, const std::string& b) {
  const auto x = parse_double(a), y = parse_double(b);
  return a == b || (x && y && *x == *y);
}

// Throws if several keys of a file set a setting to different values.
void require_one_value(const ForeignConfig& foreign) {
  std::map<std::string, const ForeignSetting*> first;
  for (const ForeignSetting& setting : foreign.settings) {
    if (setting.implied) continue;
    const ForeignSetting& other = *first.emplace(setting.name, &setting).first->second;
    if (same_value(other.value, setting.value)) continue;
    throw ConfigError("{}: it sets {}: {}, but {} sets {}; remove one of them", setting.place, setting.name,
                      setting.value, other.place, other.value);
  }
}

}  // namespace

Recipe load_recipe(const std::filesystem::path& file, std::span<const std::string> overrides,
                   const std::vector<settings::Field>& program, const ForeignConfig& foreign) {
  const Recipe own = stretto::load_recipe(file, overrides, program);
  if (foreign.settings.empty()) return own;
  require_one_value(foreign);
  std::vector<std::string> added;
  for (const ForeignSetting& setting : foreign.settings) added.push_back(as_override(setting));
  const Recipe theirs = with_places(foreign, [&] { return parse_recipe("{}", "foreign settings", added); });
  std::vector<std::string> all(overrides.begin(), overrides.end());
  std::vector<const ForeignSetting*> used;
  for (const ForeignSetting& setting : foreign.settings) {
    if (own.origins.given(setting.name)) {
      if (!setting.implied) require_same(own, theirs, setting);
      continue;
    }
    all.push_back(as_override(setting));
    used.push_back(&setting);
  }
  Recipe recipe = with_places(foreign, [&] { return stretto::load_recipe(file, all, program); });
  for (const ForeignSetting* setting : used) recipe.origins.places[setting->name] = setting->place;
  return recipe;
}

}  // namespace stretto::compat
