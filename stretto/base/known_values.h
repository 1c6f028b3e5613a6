#pragma once

#include <span>
#include <string>
#include <string_view>

namespace stretto {

// A value that the Trainer itself writes into the records of a run; modules cannot log another one of this
// name.
struct KnownValue {
  static constexpr int others = 100;

  std::string_view name;
  // of its chart; empty: the chart is named after the value and has no fixed position
  std::string_view title = {};
  // formats the value with its unit, "communication 7 %"; null: like other values
  std::string (*text)(double) = nullptr;
  int importance = others;  // values with small numbers come first on a line that is too short for all
  bool in_progress_line = true;
};

// All known values, in the order of their charts.
std::span<const KnownValue> known_values();

// Returns null for any other name.
const KnownValue* find_known_value(std::string_view name);

}  // namespace stretto
