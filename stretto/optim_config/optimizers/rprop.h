#pragma once

#include <array>

#include "stretto/settings/fields.h"

namespace stretto::optim {

struct RpropOptions {
  double lr = 0.01;
  std::array<double, 2> etas = {0.5, 1.2};
  std::array<double, 2> step_sizes = {1e-6, 50};

  void fields(settings::Fields& field);
  void check() const;
  bool operator==(const RpropOptions&) const = default;
};

}  // namespace stretto::optim
