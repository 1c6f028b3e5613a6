#include "stretto/base/metric_value.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "stretto/base/number_text.h"

namespace stretto {
namespace {

// A user's metric may have a name of a count and a value that is not a count.
bool is_count(const std::string& name, double value) {
  return (name == "total" || name.ends_with("_total") || name.ends_with("/total")) &&
         value == std::trunc(value) && std::abs(value) < 1e15;
}

}  // namespace

nlohmann::ordered_json metric_json(const std::string& name, double value) {
  if (is_count(name, value)) return static_cast<int64_t>(value);
  if (std::isfinite(value)) return value;
  return number_text(value);
}

std::optional<double> metric_of_json(const nlohmann::ordered_json& value) {
  if (value.is_number()) return value.get<double>();
  if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (value == "inf") return std::numeric_limits<double>::infinity();
  if (value == "-inf") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

std::string metric_text(const std::string& name, double value) {
  if (is_count(name, value)) return fmt::format("{} {}", name, static_cast<int64_t>(value));
  return fmt::format("{} {:.4f}", name, value);
}

}  // namespace stretto
