#pragma once

#include <memory>
#include <optional>

#include "stretto/optim_config/schedule.h"
#include "stretto/settings/fields.h"

namespace stretto::optim {

struct OneCycleLrOptions {
  std::optional<double> max_lr = {};        // must be given
  std::optional<int64_t> total_steps = {};  // unset: the run's
  double pct_start = 0.3;                   // part of the steps in which lr rises
  std::string anneal_strategy = "cos";      // or linear
  bool cycle_momentum = true;               // momentum, or beta1, falls while lr rises
  double base_momentum = 0.85;
  double max_momentum = 0.95;
  double div_factor = 25;         // lr begins at max_lr / div_factor,
  double final_div_factor = 1e4;  // and ends at that / final_div_factor
  bool three_phase = false;       // back to the first lr by the way it came, then down

  void fields(settings::Fields& field);
  void check() const;
  bool operator==(const OneCycleLrOptions&) const = default;
};

// Up to max_lr and far down (Smith & Topin 2018), as torch.optim.lr_scheduler.OneCycleLR. start() throws ConfigError where
// cycle_momentum finds an optimizer without momentum, or the run has more steps than total_steps.
std::unique_ptr<Schedule> one_cycle_lr(const OneCycleLrOptions& options);

}  // namespace stretto::optim
