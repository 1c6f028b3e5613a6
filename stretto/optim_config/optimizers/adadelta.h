#pragma once

#include "stretto/settings/fields.h"

namespace stretto::optim {

struct AdadeltaOptions {
  double lr = 1;
  double weight_decay = 0;
  double rho = 0.9;
  double eps = 1e-6;

  void fields(settings::Fields& field);
  bool operator==(const AdadeltaOptions&) const = default;
};

}  // namespace stretto::optim
