#pragma once

#include <array>

#include "stretto/settings/fields.h"

namespace stretto::optim {

struct SparseAdamOptions {
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;

  void fields(settings::Fields& field);
  bool operator==(const SparseAdamOptions&) const = default;
};

}  // namespace stretto::optim
