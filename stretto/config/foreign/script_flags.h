#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "stretto/config/foreign/hf_script.h"

// Command lines of other programs' scripts, as tables of flags that write a recipe.
namespace stretto::foreign {

// "True", "1", "yes" and their opposites in any case. Throws ConfigError, which names the flag.
bool is_true(const std::string& flag, const std::string& value);
std::string lower_case(std::string text);

// A value in YAML: numbers as they are, text quoted.
std::string quoted(const std::string& value);

// The YAML of a recipe: settings by section, in the order in which they are first used.
class RecipeText {
 public:
  // `setting` is dotted, `value` is YAML; replaces an earlier value.
  void set(const std::string& setting, const std::string& value);
  std::string text() const;

 private:
  struct Section {
    std::string name;
    std::vector<std::pair<std::string, std::string>> lines;
  };
  std::vector<Section> sections_;
};

// What is known while the flags of a command line are translated.
struct ScriptState {
  Script script;
  ScriptPlan plan;
  RecipeText recipe;
  std::map<std::string, std::string> given;  // by name, without dashes

  bool has(const char* flag) const { return given.contains(flag); }
  std::string value(const char* flag, const std::string& unset) const;
};

struct Flag {
  std::string name;
  bool boolean = false;  // may stand without a value
  std::function<void(ScriptState&, const std::string& value)> use;
};

// The kinds of flags. Its value is that of a setting.
Flag setting(std::string name, const std::string& setting);
Flag boolean(const std::string& name, const std::string& setting);
// It has no meaning here; `is_boolean`: may stand without a value.
Flag ignored(const std::string& name, bool is_boolean, const std::string& reason);
// It cannot be honoured unless the value is one of `harmless`.
Flag refused(const std::string& name, bool is_boolean, const std::vector<std::string>& harmless,
             const std::string& reason);
// It is read together with another flag.
Flag read_later(const std::string& name, bool is_boolean = false);

// Throws ConfigError with the closest name for an unknown one.
const Flag& find_flag(const std::vector<Flag>& flags, const std::string& name);

// "--flag value", "--flag=value", "--flag" of a boolean. Dashes within names may be written for underscores. Throws ConfigError
// for unknown flags and missing values.
std::map<std::string, std::string> parse_flags(const std::vector<Flag>& flags,
                                               const std::vector<std::string>& arguments);

// Throws ConfigError "--FLAG is required WHY" unless it is given.
void require_flag(const ScriptState& state, const char* flag, const char* why);

}  // namespace stretto::foreign
