#pragma once

#include "stretto/settings/fields.h"

namespace stretto::optim {

struct AsgdOptions {
  double lr = 0.01;
  double weight_decay = 0;
  double lambd = 1e-4;
  double alpha = 0.75;
  double t0 = 1e6;

  void fields(settings::Fields& field);
  bool operator==(const AsgdOptions&) const = default;
};

}  // namespace stretto::optim
