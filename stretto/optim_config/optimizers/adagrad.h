#pragma once

#include "stretto/settings/fields.h"

namespace stretto::optim {

struct AdagradOptions {
  double lr = 0.01;
  double weight_decay = 0;
  double lr_decay = 0;
  double initial_accumulator_value = 0;
  double eps = 1e-10;

  void fields(settings::Fields& field);
  bool operator==(const AdagradOptions&) const = default;
};

}  // namespace stretto::optim
