#pragma once

#include <memory>
#include <optional>

#include "stretto/optim_config/schedule.h"
#include "stretto/settings/fields.h"

namespace stretto::optim {

struct CosineAnnealingWarmRestartsOptions {
  std::optional<int64_t> t_0 = {};  // steps until the first restart; must be given
  int64_t t_mult = 1;               // by which each period is longer than the one before
  double eta_min = 0;

  void fields(settings::Fields& field);
  void check() const;
  bool operator==(const CosineAnnealingWarmRestartsOptions&) const = default;
};

// Along a cosine from lr to eta_min, then again from lr: torch.optim.lr_scheduler.CosineAnnealingWarmRestarts
// (Loshchilov & Hutter 2017).
std::unique_ptr<Schedule> cosine_annealing_warm_restarts(const CosineAnnealingWarmRestartsOptions& options);

}  // namespace stretto::optim
