#pragma once

#include <memory>
#include <optional>

#include "stretto/optim_config/schedule.h"
#include "stretto/settings/fields.h"

namespace stretto::optim {

struct StepLrOptions {
  std::optional<int64_t> step_size = {};  // steps; must be given
  double gamma = 0.1;

  void fields(settings::Fields& field);
  void check() const;
  bool operator==(const StepLrOptions&) const = default;
};

// lr times gamma after every step_size steps: torch.optim.lr_scheduler.StepLR.
std::unique_ptr<Schedule> step_lr(const StepLrOptions& options);

}  // namespace stretto::optim
