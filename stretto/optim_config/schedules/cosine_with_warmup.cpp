#include <algorithm>
#include <cmath>
#include <numbers>

#include "stretto/base/error.h"
#include "stretto/optim_config/schedules.h"
#include "stretto/optim_config/schedules/warmup.h"
#include "stretto/settings/check_settings.h"

namespace stretto::optim {

using settings::above;
using settings::at_least;

void CosineWithWarmupOptions::fields(settings::Fields& field) {
  declare_warmup(field, num_warmup_steps, warmup_ratio);
  declare_warmup_type(field, warmup_type);
  declare_training_steps(field, num_training_steps);
  field("num_cycles", num_cycles, "waves of the cosine; 0.5: from lr down to the lowest rate", above(0));
  field("min_lr_rate", min_lr_rate, "the lowest rate as a part of lr", at_least(0).at_most(1));
  field("min_lr", min_lr, "the lowest rate; set this or min_lr_rate", at_least(0));
  field("constant_steps", constant_steps, "steps at the lowest rate, at the end of the schedule; unset: none",
        at_least(0).at_most(1e9));
  field("warmup_start", warmup_start, "the first rate of the warm-up, as a part of lr; unset: 0",
        at_least(0).at_most(1));
}

void CosineWithWarmupOptions::check() const {
  check_warmup(num_warmup_steps, warmup_ratio);
  if (min_lr && min_lr_rate > 0)
    throw settings::SettingError("min_lr", "the lowest rate is set twice; remove this or min_lr_rate");
}

namespace {

class CosineWithWarmup : public WarmupSchedule {
 public:
  explicit CosineWithWarmup(const CosineWithWarmupOptions& options)
      : WarmupSchedule({options.num_warmup_steps, options.warmup_ratio, options.num_training_steps,
                        options.constant_steps.value_or(0), options.warmup_start.value_or(0),
                        options.warmup_type == "log"}),
        options_(options) {}
  std::string name() const override { return "CosineWithWarmup"; }

 private:
  void on_start() override {
    WarmupSchedule::on_start();
    if (options_.min_lr && *options_.min_lr > base().lr)
      throw ConfigError("{}: min_lr is {}, above the optimizer's lr, which is {}", name(), *options_.min_lr,
                        base().lr);
    if (constant_steps() > 0 && warmup_steps() + constant_steps() > training_steps())
      throw ConfigError(
          "{}: a warm-up of {} steps and constant_steps {} are longer than the {} steps of the "
          "schedule",
          name(), warmup_steps(), constant_steps(), training_steps());
  }
  double factor_after_warmup(int64_t steps_done) const override {
    const double lowest =
        options_.min_lr && base().lr > 0 ? *options_.min_lr / base().lr : options_.min_lr_rate;
    if (constant_steps() > 0 && steps_done >= training_steps() - constant_steps()) return lowest;
    const double angle = std::numbers::pi * options_.num_cycles * 2 * progress(steps_done);
    const double factor = 0.5 * (1 + std::cos(angle));
    return std::max(0.0, factor * (1 - lowest) + lowest);
  }
  int64_t constant_steps() const { return options_.constant_steps.value_or(0); }

  CosineWithWarmupOptions options_;
};

}  // namespace

std::unique_ptr<Schedule> cosine_with_warmup(const CosineWithWarmupOptions& options) {
  settings::check_settings(options, "CosineWithWarmup");
  return std::make_unique<CosineWithWarmup>(options);
}

}  // namespace stretto::optim
