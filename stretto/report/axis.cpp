#include "stretto/report/axis.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "stretto/base/json.h"

namespace stretto::report {
namespace {

// The distance of ticks: 1, 2 or 5 times a power of ten.
double round_distance(double distance) {
  const double power = std::pow(10, std::floor(std::log10(distance)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= distance * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

std::string grouped(std::string digits) {
  const bool negative = digits.starts_with('-');
  for (auto at = static_cast<int64_t>(digits.size()) - 3; at > (negative ? 1 : 0); at -= 3)
    digits.insert(static_cast<size_t>(at), 1, ',');
  return digits;
}

}  // namespace

Axis make_axis(double low, double high, int count) {
  if (!(high - low > std::abs(high) * 1e-12)) {
    const double margin = low == 0 ? 1 : std::abs(low) * 0.1;
    low -= margin;
    high += margin;
  }
  const double distance = round_distance((high - low) / std::max(count, 1));
  Axis axis;
  const auto first = static_cast<int64_t>(std::floor(low / distance + 1e-9));
  const auto last = static_cast<int64_t>(std::ceil(high / distance - 1e-9));
  for (int64_t i = first; i <= last; ++i) axis.ticks.push_back(static_cast<double>(i) * distance);
  axis.low = axis.ticks.front();
  axis.high = axis.ticks.back();
  return axis;
}

std::string tick_text(const Axis& axis, double tick) {
  const double distance = axis.ticks.size() > 1 ? axis.ticks[1] - axis.ticks[0] : std::abs(tick);
  const double largest = std::max(std::abs(axis.low), std::abs(axis.high));
  if (tick == 0) return "0";
  if (largest >= 1e7 || largest < 1e-3) return fmt::format("{:.3g}", tick);
  const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(distance) - 1e-9)), 0, 9);
  const std::string text = fmt::format("{:.{}f}", tick, decimals);
  return decimals == 0 ? grouped(text) : text;
}

std::string value_text(double value) {
  if (std::abs(value) >= 1e4 && std::abs(value) < 1e9) return grouped(fmt::format("{:.0f}", value));
  return fmt::format("{:.4g}", value);
}

std::string value_text_in(const nlohmann::json& object, const std::string& name) {
  const auto value = number_in(object, name);
  return value ? value_text(*value) : "";
}

}  // namespace stretto::report
