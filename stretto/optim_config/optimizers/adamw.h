#pragma once

#include <array>

#include "stretto/settings/fields.h"

namespace stretto::optim {

struct AdamwOptions {
  double lr = 1e-3;
  double weight_decay = 0.01;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;

  void fields(settings::Fields& field);
  bool operator==(const AdamwOptions&) const = default;
};

}  // namespace stretto::optim
