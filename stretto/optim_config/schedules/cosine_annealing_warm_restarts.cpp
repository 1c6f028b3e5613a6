#include <cmath>
#include <numbers>

#include "stretto/optim_config/schedules.h"
#include "stretto/settings/check_settings.h"

namespace stretto::optim {

using settings::at_least;

void CosineAnnealingWarmRestartsOptions::fields(settings::Fields& field) {
  field("T_0", t_0, "steps until the first restart; must be given", at_least(1).at_most(1e9));
  field("T_mult", t_mult, "factor of each period's length relative to the previous one",
        at_least(1).at_most(1e6));
  field("eta_min", eta_min, "lowest learning rate", at_least(0));
}

void CosineAnnealingWarmRestartsOptions::check() const {
  if (!t_0) throw settings::SettingError("T_0", "a value is required");
}

namespace {

class CosineAnnealingWarmRestarts : public Schedule {
 public:
  explicit CosineAnnealingWarmRestarts(const CosineAnnealingWarmRestartsOptions& options)
      : options_(options) {}
  std::string name() const override { return "CosineAnnealingWarmRestarts"; }
  StepRates rates(int64_t steps_done) const override {
    int64_t since_restart = steps_done, period = *options_.t_0;
    if (options_.t_mult == 1) since_restart %= period;
    for (; since_restart >= period; period *= options_.t_mult) since_restart -= period;
    const double angle = std::numbers::pi * static_cast<double>(since_restart) / static_cast<double>(period);
    return {.lr = options_.eta_min + (base().lr - options_.eta_min) * (1 + std::cos(angle)) / 2};
  }

 private:
  CosineAnnealingWarmRestartsOptions options_;
};

}  // namespace

std::unique_ptr<Schedule> cosine_annealing_warm_restarts(const CosineAnnealingWarmRestartsOptions& options) {
  settings::check_settings(options, "CosineAnnealingWarmRestarts");
  return std::make_unique<CosineAnnealingWarmRestarts>(options);
}

}  // namespace stretto::optim
