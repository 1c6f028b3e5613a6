#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "stretto/compat/hf_script.h"

// Command lines of other programs' scripts, as tables of flags that write a recipe.
namespace stretto::compat {

// "True", "1", "yes" and their opposites in any case. Throws ConfigError, which names the flag.
bool is_true(const std::string& flag, const std::string& value);

// A value in YAML: numbers as they are, text quoted.
std::string quoted(const std::string& value);

// The YAML of a recipe: settings by section, in the order in which they are first used.
class RecipeText {
 public:
  // `setting` is dotted, `value` is YAML; replaces an earlier value.
  void set(const std::string& setting, const std::string& value);
  // The flag that the following calls of set() are for, "--seed 7"; "": none.
  void set_flag(std::string flag) { flag_ = std::move(flag); }
  std::string text() const;
  FlagPlaces places() const;  // in text()

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

// What is known while the flags of a command line are translated.
struct ScriptState {
  Script script;
  ScriptPlan plan;
  RecipeText recipe;
  std::map<std::string, std::string> given;  // by name, without dashes

  bool has(const std::string& flag) const { return given.contains(flag); }
  std::string value(const std::string& flag, const std::string& unset) const;
  bool is_true(const std::string& flag, bool unset = false) const;
  // "--flag value", as it is given; REQUIRES: has(flag).
  std::string text(const std::string& flag) const { return "--" + flag + " " + given.at(flag); }
  // Sets a setting for a flag that is read together with others.
  void set_for(const std::string& flag, const std::string& setting, const std::string& value);
  // Calls `use` of the given flags, in alphabetical order.
  void use(const std::vector<Flag>& flags);
};

struct Flag {
  std::string name;
  bool boolean = false;  // may stand without a value
  std::function<void(ScriptState&, const std::string& value)> use;
  bool list = false;           // several words may follow; `value` joins them by spaces
  bool none_is_value = false;  // else None counts as not given
};

// The kinds of flags. Its value is that of a setting.
Flag setting(std::string name, const std::string& setting);
Flag boolean(const std::string& name, const std::string& setting);
// True gives the setting this value; false leaves the setting as it is.
Flag if_true(const std::string& name, const std::string& setting, const std::string& value);
// It has no meaning here, which is noted unless it is a boolean that is false; `is_boolean`: may stand without a value.
Flag ignored(const std::string& name, bool is_boolean, const std::string& reason);
// It cannot be honoured unless the value is one of `harmless`, in any case.
Flag refused(const std::string& name, bool is_boolean, const std::vector<std::string>& harmless,
             const std::string& reason);
// It is read together with another flag.
Flag read_later(const std::string& name, bool is_boolean = false);
Flag as_list(Flag flag);
// Not a boolean, but its value may be left out.
Flag may_stand_alone(Flag flag);

// Throws ConfigError with the closest name for an unknown one.
const Flag& find_flag(const std::vector<Flag>& flags, const std::string& name);

// "--flag value", "--flag=value", "--flag" of a boolean, "--no_flag" for its False. Dashes within names may be written for
// underscores. A value in quotes of its own, as SageMaker passes them, loses these; a flag with the value None or "" counts as
// not given. One argument that ends in .json is a file that holds all flags. Throws ConfigError for unknown flags and missing values,
// IoError.
std::map<std::string, std::string> parse_flags(const std::vector<Flag>& flags,
                                               const std::vector<std::string>& arguments);

// Throws ConfigError "--FLAG is required WHY" unless it is given.
void require_flag(const ScriptState& state, const char* flag, const char* why);

// Completes state.plan by the recipe. Throws ConfigError, which names flags, for settings that no recipe may have.
ScriptPlan finish_plan(ScriptState& state);

}  // namespace stretto::compat
