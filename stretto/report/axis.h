#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace stretto::report {

// A range of values with marks at round numbers.
struct Axis {
  double low = 0, high = 1;
  std::vector<double> ticks;  // within [low, high], ascending

  // Where `value` is between low (0) and high (1).
  double position(double value) const { return (value - low) / (high - low); }
};

// An axis that covers [low, high] with about `count` marks, its ends included. Equal ends are widened. REQUIRES: finite.
Axis make_axis(double low, double high, int count);

// A tick's label: "0.25", "1,000", "2e-05". `axis` determines the digits.
std::string tick_text(const Axis& axis, double tick);

// A value for legends: 4 significant digits.
std::string value_text(double value);

// The same of a member of `object`; "" if there is no such number.
std::string value_text_in(const nlohmann::json& object, const std::string& name);

}  // namespace stretto::report
