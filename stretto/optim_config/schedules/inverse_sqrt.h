#pragma once

#include <memory>
#include <optional>

#include "stretto/optim_config/schedule.h"
#include "stretto/settings/fields.h"

namespace stretto::optim {

struct InverseSqrtOptions {
  std::optional<int64_t> num_warmup_steps = {};
  std::optional<double> warmup_ratio = {};  // the same as a part of all steps; give one of the two
  std::optional<int64_t> timescale = {};  // in steps; unset: the steps of the warm-up, or 10,000 without one

  void fields(settings::Fields& field);
  void check() const;
  bool operator==(const InverseSqrtOptions&) const = default;
};

// Linear from 0 to lr over the warm-up, then lr / sqrt(steps since, in units of timescale, + 1): transformers'
// get_inverse_sqrt_schedule.
std::unique_ptr<Schedule> inverse_sqrt(const InverseSqrtOptions& options);

}  // namespace stretto::optim
