#pragma once

#include <array>

#include "stretto/settings/fields.h"

namespace stretto::optim {

struct AdafactorOptions {
  double lr = 0.01;
  double weight_decay = 0;
  double beta2_decay = -0.8;
  std::array<double, 2> eps = {0, 1e-3};  // the first 0: the machine epsilon of the master weights
  double d = 1;

  void fields(settings::Fields& field);
  bool operator==(const AdafactorOptions&) const = default;
};

}  // namespace stretto::optim
