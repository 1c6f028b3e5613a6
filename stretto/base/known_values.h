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
  std::string_view title = {};            // of its chart; empty: the name, and no position of its own
  std::string (*text)(double) = nullptr;  // with its unit: "communication 7 %"; null: as other values
  int importance = others;                // on a line that has no room for all values: smallest first
  bool in_progress_line = true;
};

// All known values, in the order of their charts.
std::span<const KnownValue> known_values();

// Returns null for any other name.
const KnownValue* find_known_value(std::string_view name);

}  // namespace stretto
