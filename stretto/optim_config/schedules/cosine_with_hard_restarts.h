#pragma once

#include <memory>
#include <optional>

#include "stretto/optim_config/schedule.h"
#include "stretto/settings/fields.h"

namespace stretto::optim {

struct CosineWithHardRestartsOptions {
  std::optional<int64_t> num_warmup_steps = {};
  std::optional<double> warmup_ratio = {};  // the same as a part of all steps; give one of the two
  int64_t num_cycles = 1;                   // half waves, each from lr down to 0

  void fields(settings::Fields& field);
  void check() const;
  bool operator==(const CosineWithHardRestartsOptions&) const = default;
};

// Linear from 0 to lr over the warm-up, then falling cosines that start again at lr: transformers'
// get_cosine_with_hard_restarts_schedule_with_warmup.
std::unique_ptr<Schedule> cosine_with_hard_restarts(const CosineWithHardRestartsOptions& options);

}  // namespace stretto::optim
