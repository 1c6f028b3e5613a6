#include "stretto/trainer/api/parameter_rules.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fnmatch.h>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/optim_config/optimizer_registry.h"

namespace stretto::trainer {
namespace {

// Unregistered types are assumed to have weight_decay.
bool has_weight_decay(const std::string& optimizer) {
  if (optim::optimizers().find(optimizer) == nullptr) return true;
  OptimizerConfig config;
  config.type = optimizer;
  const auto fields = settings::fields_of(config);
  const settings::Field* field = settings::declaration_in_use(fields, "weight_decay");
  return field != nullptr && field->rule.in_use();
}

bool matches_pattern(const std::string& pattern, const std::string& name) {
  return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

// A pattern that matches this name only.
std::string exactly(const std::string& name) {
  std::string pattern;
  for (const char c : name) {
    if (c == '*' || c == '?' || c == '[' || c == '\\') pattern += '\\';
    pattern += c;
  }
  return pattern;
}

struct LrRule {
  std::string pattern;
  double factor;
};

LrRule parse_lr_rule(const std::string& text) {
  const size_t sign = text.rfind('=');
  return {text.substr(0, sign),
          *parse_double(text.substr(sign + 1))};  // the recipe's rule has checked the form
}

class ParameterRules {
 public:
  ParameterRules(const Recipe& recipe, std::vector<std::string> names)
      : recipe_(recipe), names_(std::move(names)), depths_(layer_depths(names_)) {
    const ParametersConfig& config = recipe.parameters;
    for (const std::string& text : config.lr_factors) lr_rules_.push_back(parse_lr_rule(text));
    for (const LrRule& rule : lr_rules_) require_match("parameters.lr_factors", rule.pattern);
    for (const std::string& pattern : config.freeze) require_match("parameters.freeze", pattern);
    for (const std::string& pattern : config.weight_decay) require_match("parameters.weight_decay", pattern);
    for (const std::string& pattern : config.no_weight_decay)
      require_match("parameters.no_weight_decay", pattern);
    if (config.layer_decay && depths_.empty()) {
      throw ConfigError(
          "{}: the model has no numbered blocks, such as encoder.layer.0; parameters are named {}; use parameters.lr_factors",
          recipe.origins.label("parameters.layer_decay"), some_names());
    }
  }

  void apply(size_t parameter, ParameterGroup& group) const {
    const ParametersConfig& config = recipe_.parameters;
    const std::string& name = names_[parameter];
    const auto lr_rule = std::ranges::find_if(
        lr_rules_, [&](const LrRule& rule) { return matches_pattern(rule.pattern, name); });
    if (lr_rule != lr_rules_.end()) group.lr_factor *= lr_rule->factor;
    if (config.layer_decay) {
      const int64_t top = *std::ranges::max_element(depths_);
      group.lr_factor *= std::pow(*config.layer_decay, static_cast<double>(top - depths_[parameter]));
    }
    if (any_matches(config.weight_decay, name)) group.weight_decay = true;
    if (any_matches(config.no_weight_decay, name)) group.weight_decay = false;
    if (any_matches(config.freeze, name)) group.frozen = true;
  }

 private:
  static bool any_matches(const std::vector<std::string>& patterns, const std::string& name) {
    return std::ranges::any_of(patterns, [&](const auto& pattern) { return matches_pattern(pattern, name); });
  }

  std::string some_names() const {
    const auto end = names_.begin() + std::min<int64_t>(8, std::ssize(names_));
    return fmt::format("{}{}", fmt::join(names_.begin(), end, ", "), end == names_.end() ? "" : ", ...");
  }

  void require_match(const char* setting, const std::string& pattern) const {
    if (std::ranges::any_of(names_, [&](const auto& name) { return matches_pattern(pattern, name); })) return;
    throw ConfigError("{}: no trainable parameter matches \"{}\" (* is any text); parameters are named {}",
                      recipe_.origins.label(setting), pattern, some_names());
  }

  const Recipe& recipe_;
  std::vector<std::string> names_;
  std::vector<int64_t> depths_;
  std::vector<LrRule> lr_rules_;
};

}  // namespace

std::vector<ParameterGroup> combine_groups(torch::nn::Module& module, const Recipe& recipe,
                                           std::vector<ParameterGroup> of_module) {
  if (recipe.parameters == ParametersConfig{}) return of_module;
  std::vector<std::string> names;
  for (const parallel::NamedParameter& parameter : parallel::collect_tensors(module).trainable)
    names.push_back(parameter.name);
  const ParameterRules rules(recipe, names);
  std::vector<ParameterGroup> groups;
  std::vector<bool> used(of_module.size(), false);
  for (size_t i = 0; i < names.size(); ++i) {
    ParameterGroup group;
    const auto found = std::ranges::find_if(
        of_module, [&](const ParameterGroup& known) { return matches_pattern(known.pattern, names[i]); });
    if (found != of_module.end()) {
      group = *found;
      used[static_cast<size_t>(found - of_module.begin())] = true;
    }
    group.pattern = exactly(names[i]);
    rules.apply(i, group);
    groups.push_back(std::move(group));
  }
  // A pattern of the module without parameters remains an error.
  for (size_t i = 0; i < of_module.size(); ++i) {
    if (!used[i]) groups.push_back(of_module[i]);
  }
  return groups;
}

std::vector<int64_t> layer_depths(const std::vector<std::string>& names) {
  // The number in "a.b.3.c" after the prefix "a.b.", at the first numeric component.
  const auto block_of = [](const std::string& name) -> std::pair<std::string, std::optional<int64_t>> {
    std::string prefix;
    for (const std::string_view part : split(name, '.')) {
      if (const auto number = parse_int(part)) return {prefix, number};
      prefix += std::string(part) + ".";
    }
    return {prefix, std::nullopt};
  };
  std::map<std::string, int64_t> blocks;  // by prefix: number of blocks
  for (const std::string& name : names) {
    const auto [prefix, number] = block_of(name);
    if (number) blocks[prefix] = std::max(blocks[prefix], *number + 1);
  }
  if (blocks.empty()) return {};
  const auto deepest = std::ranges::max_element(blocks, {}, [](const auto& entry) { return entry.second; });
  std::vector<int64_t> depths;
  bool seen = false;
  for (const std::string& name : names) {
    const auto [prefix, number] = block_of(name);
    const bool inside = number && prefix == deepest->first;
    seen |= inside;
    depths.push_back(inside ? *number + 1 : seen ? deepest->second + 1 : 0);
  }
  return depths;
}

std::string describe_groups(const parallel::ModuleTensors& tensors, double lr, const std::string& optimizer) {
  const bool decays = has_weight_decay(optimizer);
  struct Count {
    int64_t tensors = 0, elements = 0;
  };
  std::map<std::pair<double, bool>, Count, std::greater<>> groups;
  for (const parallel::NamedParameter& parameter : tensors.trainable) {
    Count& count = groups[{parameter.lr_factor, parameter.weight_decay && decays}];
    ++count.tensors;
    count.elements += parameter.tensor.numel();
  }
  std::vector<std::string> lines;
  for (const auto& [settings, count] : groups) {
    const char* decay = settings.second ? ", weight decay" : ", no weight decay";
    lines.push_back(fmt::format("lr {:g}{}: {}, {} parameters", lr * settings.first, decays ? decay : "",
                                counted(count.tensors, "tensor"), count.elements));
  }
  return fmt::format("groups     {}", fmt::join(lines, "\n           "));
}

}  // namespace stretto::trainer
