#pragma once

#include <memory>

#include "stretto/optim_config/schedule.h"
#include "stretto/settings/fields.h"

namespace stretto::optim {

struct LinearLrOptions {
  double start_factor = 1.0 / 3;
  double end_factor = 1;
  int64_t total_iters = 5;  // steps from one factor to the other

  void fields(settings::Fields& field);
  bool operator==(const LinearLrOptions&) const = default;
};

// lr times a factor that goes from start_factor to end_factor, and stays there: torch.optim.lr_scheduler.LinearLR.
std::unique_ptr<Schedule> linear_lr(const LinearLrOptions& options);

}  // namespace stretto::optim
