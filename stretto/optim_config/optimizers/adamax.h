#pragma once

#include <array>

#include "stretto/settings/fields.h"

namespace stretto::optim {

struct AdamaxOptions {
  double lr = 2e-3;
  double weight_decay = 0;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;

  void fields(settings::Fields& field);
  bool operator==(const AdamaxOptions&) const = default;
};

}  // namespace stretto::optim
