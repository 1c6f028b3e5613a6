#include "stretto/compat/script_flags.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "stretto/base/error.h"
#include "stretto/base/json.h"
#include "stretto/base/strings.h"
#include "stretto/config/recipe.h"

namespace stretto::compat {

bool is_true(const std::string& flag, const std::string& value) {
  const std::string lower = lower_case(value);
  if (lower == "true" || lower == "1" || lower == "yes" || lower == "t" || lower == "y") return true;
  if (lower == "false" || lower == "0" || lower == "no" || lower == "f" || lower == "n") return false;
  throw ConfigError("--{}: found \"{}\"; expected true or false", flag, value);
}

std::string quoted(const std::string& value) {
  if (parse_double(value)) return value;
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
    if (c == '$') text += '$';
  }
  return text + "\"";
}

void RecipeText::set(const std::string& setting, const std::string& value) {
  const size_t dot = setting.find('.');
  const std::string section = dot == std::string::npos ? "" : setting.substr(0, dot);
  const std::string key = dot == std::string::npos ? setting : setting.substr(dot + 1);
  auto found = std::ranges::find(sections_, section, &Section::name);
  if (found == sections_.end()) found = sections_.insert(found, {section, {}});
  const auto line = std::ranges::find(found->lines, key, &Line::key);
  if (line != found->lines.end()) {
    *line = {key, value, flag_};
  } else {
    found->lines.push_back({key, value, flag_});
  }
}

std::string RecipeText::text() const {
  std::string yaml;
  for (const Section& section : sections_) {
    if (!section.name.empty()) yaml += section.name + ":\n";
    for (const Line& line : section.lines)
      yaml += fmt::format("{}{}: {}\n", section.name.empty() ? "" : "  ", line.key, line.value);
  }
  return yaml;
}

FlagPlaces RecipeText::places() const {
  FlagPlaces places;
  int64_t number = 0;
  for (const Section& section : sections_) {
    if (!section.name.empty()) {
      ++number;
      if (!section.lines.front().flag.empty()) places.add(number, section.lines.front().flag);
    }
    for (const Line& line : section.lines) {
      ++number;
      if (!line.flag.empty()) places.add(number, line.flag);
    }
  }
  return places;
}

std::string ScriptState::value(const std::string& flag, const std::string& unset) const {
  const auto found = given.find(flag);
  return found == given.end() ? unset : found->second;
}

bool ScriptState::is_true(const std::string& flag, bool unset) const {
  return has(flag) ? compat::is_true(flag, given.at(flag)) : unset;
}

void ScriptState::set_for(const std::string& flag, const std::string& setting, const std::string& value) {
  recipe.set_flag(text(flag));
  recipe.set(setting, value);
  recipe.set_flag("");
}

void ScriptState::use(const std::vector<Flag>& flags) {
  for (const auto& [name, value] : given) {
    recipe.set_flag(text(name));
    find_flag(flags, name).use(*this, value);
  }
  recipe.set_flag("");
}

Flag setting(std::string name, const std::string& setting) {
  return {std::move(name), false, [setting](ScriptState& state, const std::string& value) {
            state.recipe.set(setting, quoted(value));
          }};
}

Flag boolean(const std::string& name, const std::string& setting) {
  return {name, true, [name, setting](ScriptState& state, const std::string& value) {
            state.recipe.set(setting, is_true(name, value) ? "true" : "false");
          }};
}

Flag if_true(const std::string& name, const std::string& setting, const std::string& on) {
  return {name, true, [=](ScriptState& state, const std::string& value) {
            if (is_true(name, value)) state.recipe.set(setting, on);
          }};
}

Flag ignored(const std::string& name, bool is_boolean, const std::string& reason) {
  return {name, is_boolean, [=](ScriptState& state, const std::string& value) {
            if (is_boolean && !is_true(name, value)) return;
            state.plan.notes.push_back(fmt::format("--{} is ignored: {}", name, reason));
          }};
}

Flag refused(const std::string& name, bool is_boolean, const std::vector<std::string>& harmless,
             const std::string& reason) {
  return {name, is_boolean, [=](ScriptState&, const std::string& value) {
            if (std::ranges::find(harmless, lower_case(value)) == harmless.end())
              throw ConfigError("--{} {}: {}", name, value, reason);
          }};
}

Flag read_later(const std::string& name, bool is_boolean) {
  return {name, is_boolean, [](ScriptState&, const std::string&) {}};
}

Flag may_stand_alone(Flag flag) {
  flag.boolean = true;
  return flag;
}

Flag as_list(Flag flag) {
  flag.list = true;
  return flag;
}

const Flag& find_flag(const std::vector<Flag>& flags, const std::string& name) {
  std::vector<std::string> known;
  for (const Flag& flag : flags) {
    if (flag.name == name) return flag;
    known.push_back(flag.name);
  }
  throw ConfigError("--{} is not a known flag of this script{}", name, did_you_mean(name, known));
}

namespace {

// Removes the quotes of "\"text\"" and "'text'".
std::string without_quotes(const std::string& value) {
  if (value.size() < 2 || value.front() != value.back()) return value;
  if (value.front() == '\'') return value.substr(1, value.size() - 2);
  if (value.front() != '"') return value;
  const auto json = nlohmann::json::parse(value, nullptr, /*allow_exceptions=*/false);
  return json.is_string() ? json.get<std::string>() : value;
}

// Converts {"num_train_epochs": 2, "strategy": null, ...} to arguments.
std::vector<std::string> arguments_of_file(const std::vector<Flag>& flags,
                                           const std::filesystem::path& file) {
  if (!std::filesystem::exists(file))
    throw ConfigError("{}: there is no such file; expected a JSON object of flags and values", file.string());
  const nlohmann::json json = read_json(file);
  if (!json.is_object()) throw ConfigError("{}: expected an object of flags and values", file.string());
  const auto text = [](const nlohmann::json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
  };
  std::vector<std::string> arguments;
  for (const auto& [name, value] : json.items()) {
    if (value.is_null()) continue;
    std::string words = text(value);
    if (value.is_array() && find_flag(flags, name).list) {
      words.clear();
      for (const nlohmann::json& word : value) words += (words.empty() ? "" : " ") + text(word);
    }
    arguments.push_back(fmt::format("--{}={}", name, words));
  }
  return arguments;
}

// What messages call the value of a flag, by the words in its name, which scripts use alike.
const char* placeholder(const std::string& name) {
  const std::string_view last = std::string_view(name).substr(name.rfind('_') + 1);
  if (last == "file") return "FILE";
  if (last == "dir" || last == "path" || last == "weight" || last == "ckpt") return "FOLDER";
  constexpr std::string_view numbers[] = {
      "steps",  "usteps", "size",     "samples",   "length", "epochs",    "layers",  "seed",
      "stride", "decay",  "rate",     "ratio",     "norm",   "factor",    "alpha",   "lr",
      "beta1",  "beta2",  "mb",       "threshold", "freq",   "limit",     "epsilon", "percentage",
      "step",   "epoch",  "interval", "len",       "rank",   "checkpoint"};
  return std::ranges::find(numbers, last) != std::end(numbers) ? "N" : "VALUE";
}

// Whether `name` is "no_" and the name of a boolean, which sets it to false.
bool is_negated(const std::vector<Flag>& flags, const std::string& name) {
  if (!name.starts_with("no_") || std::ranges::find(flags, name, &Flag::name) != flags.end()) return false;
  const auto found = std::ranges::find(flags, name.substr(3), &Flag::name);
  return found != flags.end() && found->boolean;
}

}  // namespace

std::map<std::string, std::string> parse_flags(const std::vector<Flag>& flags,
                                               const std::vector<std::string>& arguments) {
  if (arguments.size() == 1 && !arguments[0].starts_with("--") && arguments[0].ends_with(".json"))
    return parse_flags(flags, arguments_of_file(flags, arguments[0]));
  std::map<std::string, std::string> given;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (!word.starts_with("--") && word.ends_with(".json"))
      throw ConfigError(
          "{}: a .json file contains all flags and must be the only argument; add the other flags to it",
          word);
    if (!word.starts_with("--"))
      throw ConfigError("\"{}\" does not follow a flag; flags begin with --", word);
    const size_t equals = word.find('=');
    std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    std::ranges::replace(name, '-', '_');
    if (equals == std::string::npos && is_negated(flags, name)) {
      given[name.substr(3)] = "False";
      continue;
    }
    const Flag& flag = find_flag(flags, name);
    const auto has_next = [&] { return i + 1 < arguments.size() && !arguments[i + 1].starts_with("--"); };
    std::string value = "True";
    if (equals != std::string::npos) {
      value = word.substr(equals + 1);
    } else if (has_next()) {
      value = arguments[++i];
      while (flag.list && has_next()) value += " " + arguments[++i];
    } else if (!flag.boolean) {
      throw ConfigError("--{}: its value {} is missing; write --{} {}", name, placeholder(name), name,
                        placeholder(name));
    }
    value = without_quotes(value);
    given[name] = value;
    if (value.empty() || (lower_case(value) == "none" && !flag.none_is_value)) given.erase(name);
  }
  return given;
}

void require_flag(const ScriptState& state, const char* flag, const char* why) {
  if (!state.has(flag)) throw ConfigError("--{} is required {}", flag, why);
}

ScriptPlan finish_plan(ScriptState& state) {
  ScriptPlan& plan = state.plan;
  state.recipe.set("output", quoted(plan.run_folder().string()));
  plan.recipe = state.recipe.text();
  plan.flags = state.recipe.places();
  const std::string name = plan.recipe_file().string();
  try {
    parse_recipe(plan.recipe, name);
  } catch (const ConfigError& error) {
    throw ConfigError("{}", plan.flags.in(error.what(), name));
  }
  return std::move(plan);
}

}  // namespace stretto::compat
