#include <algorithm>
#include <cmath>
#include <numbers>

#include "stretto/optim_config/schedules.h"
#include "stretto/optim_config/schedules/warmup.h"
#include "stretto/settings/check_settings.h"

namespace stretto::optim {

using settings::above;
using settings::at_least;

void CosineWithWarmupOptions::fields(settings::Fields& field) {
  declare_warmup(field, num_warmup_steps, warmup_ratio);
  declare_training_steps(field, num_training_steps);
  field("num_cycles", num_cycles, "waves of the cosine; 0.5: from lr down to the lowest rate", above(0));
  field("min_lr_rate", min_lr_rate, "the lowest rate as a part of lr", at_least(0).at_most(1));
}

void CosineWithWarmupOptions::check() const { check_warmup(num_warmup_steps, warmup_ratio); }

namespace {

class CosineWithWarmup : public WarmupSchedule {
 public:
  explicit CosineWithWarmup(const CosineWithWarmupOptions& options)
      : WarmupSchedule({options.num_warmup_steps, options.warmup_ratio, options.num_training_steps}),
        options_(options) {}
  std::string name() const override { return "CosineWithWarmup"; }

 private:
  double factor_after_warmup(int64_t steps_done) const override {
    const double angle = std::numbers::pi * options_.num_cycles * 2 * progress(steps_done);
    const double factor = 0.5 * (1 + std::cos(angle));
    return std::max(0.0, factor * (1 - options_.min_lr_rate) + options_.min_lr_rate);
  }
  CosineWithWarmupOptions options_;
};

}  // namespace

std::unique_ptr<Schedule> cosine_with_warmup(const CosineWithWarmupOptions& options) {
  settings::check_settings(options, "CosineWithWarmup");
  return std::make_unique<CosineWithWarmup>(options);
}

}  // namespace stretto::optim
