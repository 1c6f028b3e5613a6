#pragma once

#include <memory>
#include <optional>

#include "stretto/declare/fields.h"
#include "stretto/hparams/schedule.h"

namespace stretto::optim {

struct ExponentialLrOptions {
  std::optional<double> gamma = {};  // must be given

  void fields(declare::Fields& field);
  void check() const;
  bool operator==(const ExponentialLrOptions&) const = default;
};

// lr times gamma after every step: torch.optim.lr_scheduler.ExponentialLR.
std::unique_ptr<Schedule> exponential_lr(const ExponentialLrOptions& options);

}  // namespace stretto::optim
