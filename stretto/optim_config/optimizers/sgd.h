#pragma once

#include "stretto/settings/fields.h"

namespace stretto::optim {

struct SgdOptions {
  double lr = 1e-3;
  double weight_decay = 0;
  double momentum = 0;
  double dampening = 0;
  bool nesterov = false;

  void fields(settings::Fields& field);
  void check() const;
  bool operator==(const SgdOptions&) const = default;
};

}  // namespace stretto::optim
