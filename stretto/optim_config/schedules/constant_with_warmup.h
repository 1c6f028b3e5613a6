#pragma once

#include <memory>
#include <optional>

#include "stretto/optim_config/schedule.h"
#include "stretto/settings/fields.h"

namespace stretto::optim {

struct ConstantWithWarmupOptions {
  std::optional<int64_t> num_warmup_steps = {};
  std::optional<double> warmup_ratio = {};  // the same as a part of all steps; give one of the two

  void fields(settings::Fields& field);
  void check() const;
  bool operator==(const ConstantWithWarmupOptions&) const = default;
};

// Linear from 0 to lr over the warm-up, then lr: transformers' get_constant_schedule_with_warmup.
std::unique_ptr<Schedule> constant_with_warmup(const ConstantWithWarmupOptions& options);

}  // namespace stretto::optim
