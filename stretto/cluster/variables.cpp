#include "stretto/cluster/variables.h"

#include "stretto/base/error.h"
#include "stretto/base/strings.h"

namespace stretto::cluster {

std::optional<std::string> Variables::find(const char* name) const {
  auto value = getenv_(name);
  if (value && value->empty()) value.reset();
  return value;
}

std::string Variables::need(const char* name) const {
  if (auto value = find(name)) return *value;
  throw ConfigError(
      "environment: {} is not set although {} is; start the program with `stretto launch` or torchrun, which set all of them, or unset {} to run a single rank",
      name, first_set(), first_set());
}

int Variables::number(const char* name, const std::string& text, long long low, long long high) const {
  const auto value = parse_int(text);
  if (!value) throw ConfigError("environment: {}=\"{}\" is not a whole number", name, text);
  if (*value < low || *value > high) {
    throw ConfigError("environment: {}={} is out of range; it must be in {} .. {}", name, *value, low, high);
  }
  return static_cast<int>(*value);
}

int Variables::number_or_zero(const char* name, long long high) const {
  const auto text = find(name);
  return text ? number(name, *text, 0, high) : 0;
}

void Variables::check_below(const char* name, int value, const char* bound_name, int bound) const {
  if (value < bound) return;
  throw ConfigError("environment: {}={} does not fit {}={}: it must be in 0 .. {}", name, value, bound_name,
                    bound, bound - 1);
}

const char* Variables::first_set() const {
  for (const char* name : identity_) {
    if (find(name)) return name;
  }
  return nullptr;
}

}  // namespace stretto::cluster
