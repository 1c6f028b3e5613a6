#include "stretto/config/model_rule.h"

#include <regex>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/settings/rule.h"

namespace stretto {
namespace {

const std::string name_pattern = "[A-Za-z0-9][A-Za-z0-9_.-]{0,99}";
const std::string number_pattern = "[-+]?(?:[0-9]+\\.?[0-9]*|\\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?";

}  // namespace

ModelRule make_model_rule(const std::string& name, const SavingLimits& limits) {
  if (!std::regex_match(name, std::regex(name_pattern)))
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
  std::smatch parts;
  const std::regex form("(" + name_pattern + ")(?::(min|max))?(?:([<>])(" + number_pattern + "))?");
  if (!std::regex_match(text, parts, form))
    throw ConfigError("\"{}\" is not {}", text, model_rule_form().form);
  SavingLimits limits;
  if (parts[2].matched) limits.mode = parts[2].str();
  if (parts[3].matched)
    (parts[3] == ">" ? limits.saving_above : limits.saving_below) = parse_double(parts[4].str());
  return make_model_rule(parts[1], limits);
}

}  // namespace stretto
