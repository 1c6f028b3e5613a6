#pragma once

#include <memory>

#include "stretto/declare/fields.h"
#include "stretto/hparams/schedule.h"

namespace stretto::optim {

struct ConstantOptions {
  void fields(declare::Fields&) {}
  bool operator==(const ConstantOptions&) const = default;
};

// The optimizer's own learning rate throughout.
std::unique_ptr<Schedule> constant(const ConstantOptions& options = {});

}  // namespace stretto::optim
