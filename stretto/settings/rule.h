#pragma once

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace stretto::settings {

// Restricts the values of a setting. Rules are created by the functions below and chained:
// `at_least(0).below(1)`, `above(0).used_with("type", type, {"SGD"})`. For a list, the rule applies to each
// element.
struct Rule {
  // The setting applies only if another one, declared before it, has one of `values`.
  struct Condition {
    std::string key;
    const std::string* chosen = nullptr;
    std::vector<std::string> values;
  };
  // A condition that can be evaluated only once all settings are resolved.
  struct Applicability {
    std::function<bool()> holds;
    std::string to;  // the condition in words, for messages
  };

  std::vector<std::string> choices;              // allowed texts; empty: any
  bool choices_are_checked = true;               // false: other texts are read, too
  std::map<std::string, std::string> spellings;  // alternative names of choices
  std::map<std::string, std::string> refusals;   // known values that are rejected, with the reason
  std::string pattern;  // regular expression (ECMAScript) that a whole text must match; empty: any
  std::string form;     // description of the pattern for help and messages: "a time: 30s, 10m or 2h"
  double lowest = -std::numeric_limits<double>::infinity();
  double highest = std::numeric_limits<double>::infinity();
  bool lowest_excluded = false;
  bool highest_excluded = false;
  std::optional<Condition> condition;
  std::optional<Applicability> applicability;
  bool free_on_resume = false;

  Rule below(double bound) const;
  Rule at_most(double bound) const;
  Rule or_spelled(std::map<std::string, std::string> names) const;
  Rule refusing(std::map<std::string, std::string> reasons) const;
  // REQUIRES: `chosen` outlives the rule.
  Rule used_with(std::string key, const std::string& chosen, std::vector<std::string> values) const;
  // Values other than the default apply only if `holds` once all settings are resolved; `to`: the condition
  // in words, for messages. REQUIRES: the objects that `holds` refers to outlive the rule.
  Rule applies_if(std::function<bool()> holds, std::string to) const;
  // A resumed run may have another value, since the setting does not affect the result of the run. For a
  // section, this applies to all its settings.
  Rule may_change_on_resume() const;
  // The choices are for help and schema only: the user of the setting refuses other texts.
  Rule checked_later() const;

  // Whether the setting applies: its condition holds, or there is none.
  bool in_use() const;
  bool allows(double number) const;
  bool accepts(const std::string& text) const;  // whether the pattern matches
  // "at least 0 and below 1"; empty if every number is allowed.
  std::string range_text() const;
};

// The first rule of a chain: the setting is one of `choices`; a text that matches a regular expression, which
// `form` describes in messages; a number of at least, or above, a bound; or a setting that a resumed run may
// change.
Rule one_of(std::vector<std::string> choices);
Rule matches(std::string pattern, std::string form);
Rule at_least(double bound);
Rule above(double bound);
Rule may_change_on_resume();

}  // namespace stretto::settings
