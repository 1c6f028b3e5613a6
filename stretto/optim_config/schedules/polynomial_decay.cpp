#include <cmath>

#include "stretto/base/error.h"
#include "stretto/optim_config/schedules.h"
#include "stretto/optim_config/schedules/warmup.h"
#include "stretto/settings/check_settings.h"

namespace stretto::optim {

using settings::at_least;

void PolynomialDecayOptions::fields(settings::Fields& field) {
  declare_warmup(field, num_warmup_steps, warmup_ratio);
  declare_training_steps(field, num_training_steps);
  field("lr_end", lr_end, "learning rate at the end of the schedule", at_least(0));
  field("power", power, "power of the polynomial", at_least(0));
}

void PolynomialDecayOptions::check() const { check_warmup(num_warmup_steps, warmup_ratio); }

namespace {

class PolynomialDecay : public WarmupSchedule {
 public:
  explicit PolynomialDecay(const PolynomialDecayOptions& options)
      : WarmupSchedule({options.num_warmup_steps, options.warmup_ratio, options.num_training_steps}),
        options_(options) {}
  std::string name() const override { return "PolynomialDecayWithWarmup"; }

 private:
  void on_start() override {
    WarmupSchedule::on_start();
    if (options_.lr_end < base().lr) return;
    throw ConfigError("{}: lr_end is {}; it must be below the optimizer's lr, which is {}", name(),
                      options_.lr_end, base().lr);
  }
  double factor_after_warmup(int64_t steps_done) const override {
    if (steps_done > training_steps()) return options_.lr_end / base().lr;
    const double left = std::pow(1 - progress(steps_done), options_.power);
    return ((base().lr - options_.lr_end) * left + options_.lr_end) / base().lr;
  }
  PolynomialDecayOptions options_;
};

}  // namespace

std::unique_ptr<Schedule> polynomial_decay(const PolynomialDecayOptions& options) {
  settings::check_settings(options, "PolynomialDecayWithWarmup");
  return std::make_unique<PolynomialDecay>(options);
}

}  // namespace stretto::optim
