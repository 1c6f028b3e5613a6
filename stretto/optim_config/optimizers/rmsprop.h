#pragma once

#include "stretto/settings/fields.h"

namespace stretto::optim {

struct RmspropOptions {
  double lr = 0.01;
  double weight_decay = 0;
  double alpha = 0.99;
  double eps = 1e-8;
  double momentum = 0;
  bool centered = false;

  void fields(settings::Fields& field);
  bool operator==(const RmspropOptions&) const = default;
};

}  // namespace stretto::optim
