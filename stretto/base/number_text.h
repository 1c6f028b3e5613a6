#pragma once

#include <cmath>
#include <string>

#include <fmt/format.h>

namespace stretto {

// A floating-point number for messages: "inf", "-inf", and "nan", without its meaningless sign bit.
inline std::string number_text(double value) {
  return std::isnan(value) ? std::string("nan") : fmt::format("{}", value);
}

}  // namespace stretto
