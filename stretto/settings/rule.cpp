#include "stretto/settings/rule.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "stretto/base/regex.h"

namespace stretto::settings {

Rule Rule::below(double bound) const {
  Rule rule = *this;
  rule.highest = bound;
  rule.highest_excluded = true;
  return rule;
}

Rule Rule::at_most(double bound) const {
  Rule rule = *this;
  rule.highest = bound;
  rule.highest_excluded = false;
  return rule;
}

Rule Rule::used_with(std::string key, const std::string& chosen, std::vector<std::string> values) const {
  Rule rule = *this;
  rule.condition = Condition{std::move(key), &chosen, std::move(values)};
  return rule;
}

Rule Rule::applies_if(std::function<bool()> holds, std::string to) const {
  Rule rule = *this;
  rule.applicability = Applicability{std::move(holds), std::move(to)};
  return rule;
}

Rule Rule::may_change_on_resume() const {
  Rule rule = *this;
  rule.free_on_resume = true;
  return rule;
}

Rule Rule::checked_later() const {
  Rule rule = *this;
  rule.choices_are_checked = false;
  return rule;
}

bool Rule::in_use() const {
  if (!condition) return true;
  return std::find(condition->values.begin(), condition->values.end(), *condition->chosen) !=
         condition->values.end();
}

bool Rule::allows(double number) const {
  const bool above_lowest = lowest_excluded ? number > lowest : number >= lowest;
  const bool below_highest = highest_excluded ? number < highest : number <= highest;
  return above_lowest && below_highest;
}

bool Rule::accepts(const std::string& text) const {
  return pattern.empty() || match_whole(text, pattern).has_value();
}

std::string Rule::range_text() const {
  const bool has_lowest = std::isfinite(lowest);
  const bool has_highest = std::isfinite(highest);
  const bool closed = !lowest_excluded && !highest_excluded;
  if (has_lowest && has_highest && closed) {
    return lowest == highest ? fmt::format("{} (the only value so far)", lowest)
                             : fmt::format("from {} to {}", lowest, highest);
  }
  const std::string from =
      has_lowest ? fmt::format("{} {}", lowest_excluded ? "above" : "at least", lowest) : "";
  const std::string to =
      has_highest ? fmt::format("{} {}", highest_excluded ? "below" : "at most", highest) : "";
  return from + (has_lowest && has_highest ? " and " : "") + to;
}

Rule Rule::or_spelled(std::map<std::string, std::string> names) const {
  Rule rule = *this;
  rule.spellings = std::move(names);
  return rule;
}

Rule Rule::refusing(std::map<std::string, std::string> reasons) const {
  Rule rule = *this;
  rule.refusals = std::move(reasons);
  return rule;
}

Rule one_of(std::vector<std::string> choices) {
  Rule rule;
  rule.choices = std::move(choices);
  return rule;
}

Rule matches(std::string pattern, std::string form) {
  Rule rule;
  rule.pattern = std::move(pattern);
  rule.form = std::move(form);
  return rule;
}

Rule at_least(double bound) {
  Rule rule;
  rule.lowest = bound;
  return rule;
}

Rule above(double bound) {
  Rule rule = at_least(bound);
  rule.lowest_excluded = true;
  return rule;
}

Rule may_change_on_resume() { return Rule{}.may_change_on_resume(); }

}  // namespace stretto::settings
