#pragma once

#include <memory>
#include <optional>

#include "stretto/optim_config/schedule.h"
#include "stretto/settings/fields.h"

namespace stretto::optim {

struct CyclicLrOptions {
  std::optional<double> base_lr = {};          // unset: the optimizer's lr
  std::optional<double> max_lr = {};           // must be given
  int64_t step_size_up = 2000;                 // steps from base_lr to max_lr
  std::optional<int64_t> step_size_down = {};  // and back; unset: as many
  std::string mode =
      "triangular";  // or triangular2: each cycle half as high; exp_range: gamma^steps times as high
  double gamma = 1;
  bool cycle_momentum = true;  // momentum, or beta1, goes from max_momentum to base_momentum and back
  double base_momentum = 0.8;
  double max_momentum = 0.9;

  void fields(settings::Fields& field);
  void check() const;
  bool operator==(const CyclicLrOptions&) const = default;
};

// Up and down between two rates (Smith 2017), as torch.optim.lr_scheduler.CyclicLR. start() throws ConfigError where
// cycle_momentum finds an optimizer without momentum.
std::unique_ptr<Schedule> cyclic_lr(const CyclicLrOptions& options);

}  // namespace stretto::optim
