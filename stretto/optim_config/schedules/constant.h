#pragma once

#include <memory>

#include "stretto/optim_config/schedule.h"
#include "stretto/settings/fields.h"

namespace stretto::optim {

struct ConstantOptions {
  void fields(settings::Fields&) {}
  bool operator==(const ConstantOptions&) const = default;
};

// The optimizer's own learning rate throughout.
std::unique_ptr<Schedule> constant(const ConstantOptions& options = {});

}  // namespace stretto::optim
