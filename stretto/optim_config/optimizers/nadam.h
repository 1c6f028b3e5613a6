#pragma once

#include <array>

#include "stretto/settings/fields.h"

namespace stretto::optim {

struct NadamOptions {
  double lr = 2e-3;
  double weight_decay = 0;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double momentum_decay = 4e-3;
  bool decoupled_weight_decay = false;

  void fields(settings::Fields& field);
  bool operator==(const NadamOptions&) const = default;
};

}  // namespace stretto::optim
