#include <algorithm>
#include <cmath>
#include <numbers>

#include "stretto/optim_config/schedules.h"
#include "stretto/optim_config/schedules/warmup.h"
#include "stretto/settings/check_settings.h"

namespace stretto::optim {

using settings::at_least;

void CosineWithHardRestartsOptions::fields(settings::Fields& field) {
  declare_warmup(field, num_warmup_steps, warmup_ratio);
  declare_training_steps(field, num_training_steps);
  field("num_cycles", num_cycles, "number of cosine decays, each from lr to 0", at_least(1).at_most(1e6));
}

void CosineWithHardRestartsOptions::check() const { check_warmup(num_warmup_steps, warmup_ratio); }

namespace {

class CosineWithHardRestarts : public WarmupSchedule {
 public:
  explicit CosineWithHardRestarts(const CosineWithHardRestartsOptions& options)
      : WarmupSchedule({options.num_warmup_steps, options.warmup_ratio, options.num_training_steps}),
        options_(options) {}
  std::string name() const override { return "CosineWithHardRestartsWithWarmup"; }

 private:
  double factor_after_warmup(int64_t steps_done) const override {
    const double part = progress(steps_done);
    if (part >= 1) return 0;
    const double of_cycle = std::fmod(static_cast<double>(options_.num_cycles) * part, 1.0);
    return std::max(0.0, 0.5 * (1 + std::cos(std::numbers::pi * of_cycle)));
  }
  CosineWithHardRestartsOptions options_;
};

}  // namespace

std::unique_ptr<Schedule> cosine_with_hard_restarts(const CosineWithHardRestartsOptions& options) {
  settings::check_settings(options, "CosineWithHardRestartsWithWarmup");
  return std::make_unique<CosineWithHardRestarts>(options);
}

}  // namespace stretto::optim
