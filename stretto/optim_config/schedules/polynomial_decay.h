#pragma once

#include <memory>
#include <optional>

#include "stretto/optim_config/schedule.h"
#include "stretto/settings/fields.h"

namespace stretto::optim {

struct PolynomialDecayOptions {
  std::optional<int64_t> num_warmup_steps = {};
  std::optional<double> warmup_ratio = {};  // the same as a part of all steps; give one of the two
  double lr_end = 1e-7;
  double power = 1;

  void fields(settings::Fields& field);
  void check() const;
  bool operator==(const PolynomialDecayOptions&) const = default;
};

// Linear from 0 to lr over the warm-up, then a polynomial down to lr_end at the end of the run: transformers'
// get_polynomial_decay_schedule_with_warmup. start() throws ConfigError unless lr_end is below lr.
std::unique_ptr<Schedule> polynomial_decay(const PolynomialDecayOptions& options);

}  // namespace stretto::optim
