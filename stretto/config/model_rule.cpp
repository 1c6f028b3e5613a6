#include "stretto/config/model_rule.h"

#include "stretto/base/error.h"
#include "stretto/base/regex.h"
#include "stretto/base/strings.h"
#include "stretto/settings/rule.h"

namespace stretto {
namespace {

const std::string name_pattern = "[A-Za-z0-9][A-Za-z0-9_.-]{0,99}";
const std::string number_pattern = "[-+]?(?:[0-9]+\\.?[0-9]*|\\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?";

}  // namespace

ModelRule make_model_rule(const std::string& name, const SavingLimits& limits) {
  if (!match_whole(name, name_pattern))
    throw ConfigError(
        "\"{}\" is not a name for saved models; expected the name of a metric, as in best_accuracy, of letters, digits, \"_\", \"-\" and \".\"",
        name);
  const std::string metric = name.starts_with("best_") ? name.substr(5) : name;
  return {"best_" + metric, metric, limits};
}

settings::Rule model_rule_form() {
  return settings::matches(
      name_pattern + "(?::(?:min|max))?(?:[<>]" + number_pattern + ")?",
      "a metric, optionally with a limit: best_accuracy, best_f1>0.5, best_valid_loss<0.7");
}

ModelRule parse_model_rule(const std::string& text) {
  const auto parts =
      match_whole(text, "(" + name_pattern + ")(?::(min|max))?(?:([<>])(" + number_pattern + "))?");
  if (!parts) throw ConfigError("\"{}\" is not {}", text, model_rule_form().form);
  const std::string &metric = parts->at(1), &mode = parts->at(2), &sign = parts->at(3),
                    &number = parts->at(4);
  SavingLimits limits;
  if (!mode.empty()) limits.mode = mode;
  if (!sign.empty()) (sign == ">" ? limits.saving_above : limits.saving_below) = parse_double(number);
  return make_model_rule(metric, limits);
}

}  // namespace stretto
