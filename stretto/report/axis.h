#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace stretto::report {

// A range of values with ticks at round numbers.
struct Axis {
  double low = 0, high = 1;
  std::vector<double> ticks;  // within [low, high], ascending

  // The position of `value` between low (0) and high (1).
  double position(double value) const { return (value - low) / (high - low); }
};

// An axis that covers [low, high] with about `count` ticks, including its ends. Equal ends are widened.
// REQUIRES: low and high are finite.
Axis make_axis(double low, double high, int count);

// A tick's label: "0.25", "1,000", "2e-05". `axis` determines the digits.
std::string tick_text(const Axis& axis, double tick);

// A value for legends: 4 significant digits.
std::string value_text(double value);

// value_text() of a member of `object`; "" if it is missing or not a number.
std::string value_text_in(const nlohmann::json& object, const std::string& name);

}  // namespace stretto::report
