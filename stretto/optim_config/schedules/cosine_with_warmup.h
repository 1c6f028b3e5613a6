#pragma once

#include <memory>
#include <optional>

#include "stretto/optim_config/schedule.h"
#include "stretto/settings/fields.h"

namespace stretto::optim {

struct CosineWithWarmupOptions {
  std::optional<int64_t> num_warmup_steps = {};
  std::optional<double> warmup_ratio = {};  // the same as a part of all steps; give one of the two
  double num_cycles = 0.5;                  // waves of the cosine; 0.5: from lr down to the lowest rate
  double min_lr_rate = 0;                   // the lowest rate as a part of lr

  void fields(settings::Fields& field);
  void check() const;
  bool operator==(const CosineWithWarmupOptions&) const = default;
};

// Linear from 0 to lr over the warm-up, then lr times a cosine: transformers' get_cosine_schedule_with_warmup, and with min_lr_rate
// its get_cosine_with_min_lr_schedule_with_warmup.
std::unique_ptr<Schedule> cosine_with_warmup(const CosineWithWarmupOptions& options);

}  // namespace stretto::optim
