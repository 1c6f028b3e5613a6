#pragma once

#include <memory>
#include <optional>

#include "stretto/optim_config/schedule.h"
#include "stretto/settings/fields.h"

namespace stretto::optim {

struct ExponentialLrOptions {
  std::optional<double> gamma = {};  // must be given

  void fields(settings::Fields& field);
  void check() const;
  bool operator==(const ExponentialLrOptions&) const = default;
};

// lr times gamma after every step: torch.optim.lr_scheduler.ExponentialLR.
std::unique_ptr<Schedule> exponential_lr(const ExponentialLrOptions& options);

}  // namespace stretto::optim
