#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "stretto/compat/hf_script.h"

// Translates command lines of other programs' scripts to recipes by tables of flags.
namespace stretto::compat {

// Parses "True", "1", "yes" and their opposites in any case. Throws ConfigError, which names the flag.
bool is_true(const std::string& flag, const std::string& value);

// A value as YAML: numbers unchanged, text quoted.
std::string quoted(const std::string& value);

// The YAML of a recipe: settings by section, in the order in which they are first used.
class RecipeText {
 public:
  // `setting` is dotted, `value` is YAML; replaces an earlier value.
  void set(const std::string& setting, const std::string& value);
  // Attributes the following calls of set() to a flag, such as "--seed 7"; "": none.
  void set_flag(std::string flag) { flag_ = std::move(flag); }
  std::string text() const;
  FlagPlaces places() const;  // the flags of the lines of text()

 private:
  struct Line {
    std::string key, value, flag;
  };
  struct Section {
    std::string name;
    std::vector<Line> lines;
  };
  std::vector<Section> sections_;
  std::string flag_;
};

struct Flag;

// The state of the translation of a command line.
struct ScriptState {
  Script script;
  ScriptPlan plan;
  RecipeText recipe;
  std::map<std::string, std::string> given;  // values by name, without dashes

  bool has(const std::string& flag) const { return given.contains(flag); }
  std::string value(const std::string& flag, const std::string& unset) const;
  bool is_true(const std::string& flag, bool unset = false) const;
  // The flag as it was given, "--flag value". REQUIRES: has(flag).
  std::string text(const std::string& flag) const { return "--" + flag + " " + given.at(flag); }
  // Sets a setting and attributes it to `flag`.
  void set_for(const std::string& flag, const std::string& setting, const std::string& value);
  // Calls Flag::use of the given flags, in alphabetical order.
  void use(const std::vector<Flag>& flags);
};

struct Flag {
  std::string name;
  bool boolean = false;  // the value may be omitted
  std::function<void(ScriptState&, const std::string& value)> use;
  bool list = false;           // several words may follow; `value` joins them with spaces
  bool none_is_value = false;  // otherwise None counts as not given
};

// The kinds of flags. The value of the flag is the value of a setting.
Flag setting(std::string name, const std::string& setting);
Flag boolean(const std::string& name, const std::string& setting);
// True sets the setting to this value; false has no effect.
Flag if_true(const std::string& name, const std::string& setting, const std::string& value);
// Ignores the flag, with a note unless it is a boolean that is false. `is_boolean`: the value may be omitted.
Flag ignored(const std::string& name, bool is_boolean, const std::string& reason);
// Throws unless the flag's value is one of `harmless`, in any case.
Flag refused(const std::string& name, bool is_boolean, const std::vector<std::string>& harmless,
             const std::string& reason);
// Marks the flag as read together with another one.
Flag read_later(const std::string& name, bool is_boolean = false);
Flag as_list(Flag flag);
// Makes the value of a flag that is not a boolean optional.
Flag may_stand_alone(Flag flag);

// Throws ConfigError, with the closest name, for an unknown flag.
const Flag& find_flag(const std::vector<Flag>& flags, const std::string& name);

// Parses "--flag value", "--flag=value", and for booleans "--flag" and "--no_flag". Names may contain dashes
// instead of underscores. Quotes around a value, which SageMaker adds, are removed; a flag with the value
// None or "" counts as not given. A single argument that ends in .json is a file with all flags. Throws
// ConfigError for unknown flags and missing values, IoError.
std::map<std::string, std::string> parse_flags(const std::vector<Flag>& flags,
                                               const std::vector<std::string>& arguments);

// Throws ConfigError "--FLAG is required WHY" unless it is given.
void require_flag(const ScriptState& state, const char* flag, const char* why);

// Adds the recipe to state.plan. Throws ConfigError, which names flags, if the recipe is invalid.
ScriptPlan finish_plan(ScriptState& state);

}  // namespace stretto::compat
