#include "stretto/compat/foreign.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/ranges.h>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/compat/keys.h"

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

// Whether a key, and not only a default of a tool, sets the setting.
bool is_stated(const ForeignConfig& foreign, const std::string& name) {
  return std::ranges::any_of(foreign.settings, [&](const ForeignSetting& setting) {
    return !setting.implied && setting.name == name;
  });
}

// A key at the top level of a document by which it is recognised, and the option for such files; a recipe has
// none.
struct TellingKey {
  const settings::YamlNode& node;
  std::string_view option;
};

std::optional<TellingKey> telling_key(const settings::YamlNode& document) {
  constexpr std::pair<std::string_view, std::string_view> keys[] = {
      {"transformers-params", "--params"},
      {"data-params", "--params"},
      {"hps", "--hps"},
      {"distributed_type", "--accelerate"},
      {"compute_environment", "--accelerate"},
      {"zero_optimization", "--deepspeed"},
      {"train_batch_size", "--deepspeed"},
      {"train_micro_batch_size_per_gpu", "--deepspeed"},
      {"task", ""},
      {"model", ""}};
  for (const auto& [key, option] : keys) {
    if (const settings::YamlNode* node = document.find(key)) return TellingKey{*node, option};
  }
  return std::nullopt;
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
  const auto load = [&](std::span<const std::string> settings) {
    return file.empty() ? parse_recipe("{}", "no recipe", settings, program)
                        : stretto::load_recipe(file, settings, program);
  };
  const Recipe own = load(overrides);
  if (foreign.settings.empty()) return own;
  require_one_value(foreign);
  std::vector<std::string> added;
  for (const ForeignSetting& setting : foreign.settings) added.push_back(as_override(setting));
  const Recipe theirs = with_places(foreign, [&] { return parse_recipe("{}", "foreign settings", added); });
  std::vector<std::string> all(overrides.begin(), overrides.end());
  std::vector<const ForeignSetting*> used;
  for (const ForeignSetting& setting : foreign.settings) {
    if (!setting.unless.empty() && own.origins.given(setting.unless)) continue;
    if (setting.implied && is_stated(foreign, setting.name)) continue;
    if (own.origins.given(setting.name)) {
      if (!setting.implied) require_same(own, theirs, setting);
      continue;
    }
    all.push_back(as_override(setting));
    used.push_back(&setting);
  }
  Recipe recipe = with_places(foreign, [&] { return load(all); });
  for (const ForeignSetting* setting : used) recipe.origins.places[setting->name] = setting->place;
  return recipe;
}

void require_enough(const Recipe& recipe, const ForeignConfig& foreign, Verb verb) {
  const auto require = [&](bool given, const std::string& setting, const std::string& what) {
    if (given) return;
    const auto key = std::ranges::find(foreign.keys, setting, &ForeignKey::setting);
    if (key != foreign.keys.end())
      throw ConfigError("{} is missing: {}; add it, or pass {}=...", key->place, what, setting);
    throw ConfigError("{}: it has no key for {}; pass {}=..., or a recipe", fmt::join(foreign.files, ", "),
                      what, setting);
  };
  if (verb == Verb::fit) return;  // the program has its own model and data
  if (verb == Verb::test) return require(recipe.data.test.has_value(), "data.test", "the samples to test");
  const ModelConfig& model = recipe.model;
  require(model.path || model.config || model.type, "model.path", "the folder of the model to start from");
  require(recipe.data.train || !recipe.data.mixture.empty(), "data.train", "the training samples");
}

std::string option_for_file(const std::filesystem::path& file) {
  try {
    ForeignConfig unused;
    const settings::YamlNode document = parse_file(file, "", unused);
    if (const auto key = telling_key(document)) return std::string(key->option);
  } catch (const Error&) {  // whoever reads it as what it is meant to be reports the error
  }
  return "";
}

void require_file_for(std::string_view option, const settings::YamlNode& document) {
  const auto key = telling_key(document);
  if (!key || key->option == option) return;
  if (key->option.empty()) {
    throw ConfigError("{}: {}: this is a key of recipes; pass the file as the recipe", key->node.key_place,
                      key->node.key);
  }
  throw ConfigError("{}: {}: this is a key of files for {}; pass the file with that option",
                    key->node.key_place, key->node.key, key->option);
}

void merge(ForeignConfig& all, const ForeignConfig& one) {
  const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
  append(all.files, one.files);
  append(all.settings, one.settings);
  append(all.keys, one.keys);
  append(all.notes, one.notes);
  append(all.warnings, one.warnings);
  if (one.hosts.nodes || one.hosts.node_rank) all.hosts = one.hosts;
  if (one.ranks) {
    all.ranks = one.ranks;
    all.ranks_place = one.ranks_place;
  }
  if (!one.visible_devices.empty()) {
    all.visible_devices = one.visible_devices;
    all.visible_devices_place = one.visible_devices_place;
  }
  if (!one.test_place.empty()) all.test_place = one.test_place;
  if (one.mpirun_place.empty()) return;
  all.mpirun_place = one.mpirun_place;
  all.mpirun_hostfile = one.mpirun_hostfile;
}

ForeignConfig read_foreign(const ForeignFiles& files) {
  ForeignConfig all;
  if (!files.accelerate.empty()) merge(all, read_accelerate(files.accelerate));
  if (!files.deepspeed.empty()) merge(all, read_deepspeed(files.deepspeed));
  if (!files.parameters.empty()) merge(all, read_universal_trainer(files.parameters));
  if (!files.hps.empty()) merge(all, read_hps(files.hps));
  return all;
}

}  // namespace stretto::compat
