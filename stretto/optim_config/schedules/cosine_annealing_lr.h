#pragma once

#include <memory>
#include <optional>

#include "stretto/optim_config/schedule.h"
#include "stretto/settings/fields.h"

namespace stretto::optim {

struct CosineAnnealingLrOptions {
  std::optional<int64_t> t_max = {};  // steps from lr down to eta_min; unset: all of the run
  double eta_min = 0;

  void fields(settings::Fields& field);
  bool operator==(const CosineAnnealingLrOptions&) const = default;
};

// Along a cosine from lr to eta_min over t_max steps, and back: torch.optim.lr_scheduler.CosineAnnealingLR.
std::unique_ptr<Schedule> cosine_annealing_lr(const CosineAnnealingLrOptions& options);

}  // namespace stretto::optim
