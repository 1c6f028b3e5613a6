#pragma once

#include <concepts>
#include <cstdint>
#include <string>

#include "stretto/settings/fields.h"

namespace stretto {

// How often something happens in a run, as it is written in recipes:
//   "500", "500st" steps; "epoch", "2ep", "0.25ep" epochs; "30s", "10m", "2h", "1d" time; "eval", "2eval"
//   evaluations; "never".
// In programs also a number of steps: recipe.track.log_every = 4.
class Interval {
 public:
  enum class Unit { never, steps, epochs, seconds, evaluations };

  Interval() = default;  // never
  // Throws ConfigError for text in another form.
  Interval(std::string text);
  Interval(const char* text) : Interval(std::string(text)) {}
  Interval(std::integral auto steps) : Interval(std::to_string(steps)) {}

  Unit unit() const;
  double count() const;  // of units; 0 for never
  bool never() const { return unit() == Unit::never; }
  // The count in `unit`; 0 if the interval has another unit.
  double in(Unit unit) const { return this->unit() == unit ? count() : 0; }
  const std::string& text() const { return text_; }

  // Declares a setting of a recipe with this value.
  void declare(settings::Fields& field, const std::string& key, const std::string& help);

  bool operator==(const Interval& other) const { return unit() == other.unit() && count() == other.count(); }

 private:
  std::string text_ = "never";
};

// The rule of a setting that is a duration: "30s", "10m", "2h", "1d".
settings::Rule duration_rule();

// Seconds in such a text. Throws ConfigError for other text.
double parse_duration(const std::string& text);

}  // namespace stretto
