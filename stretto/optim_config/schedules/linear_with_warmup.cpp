#include <algorithm>

#include "stretto/optim_config/schedules.h"
#include "stretto/optim_config/schedules/warmup.h"
#include "stretto/settings/check_settings.h"

namespace stretto::optim {

void LinearWithWarmupOptions::fields(settings::Fields& field) {
  declare_warmup(field, num_warmup_steps, warmup_ratio);
  declare_warmup_type(field, warmup_type);
  declare_training_steps(field, num_training_steps);
}

void LinearWithWarmupOptions::check() const { check_warmup(num_warmup_steps, warmup_ratio); }

namespace {

class LinearWithWarmup : public WarmupSchedule {
 public:
  explicit LinearWithWarmup(const LinearWithWarmupOptions& options)
      : WarmupSchedule({.num_warmup_steps = options.num_warmup_steps,
                        .warmup_ratio = options.warmup_ratio,
                        .num_training_steps = options.num_training_steps,
                        .is_logarithmic = options.warmup_type == "log"}) {}
  std::string name() const override { return "LinearWithWarmup"; }

 private:
  double factor_after_warmup(int64_t steps_done) const override {
    const auto left = static_cast<double>(training_steps() - steps_done);
    const auto decay_steps = static_cast<double>(std::max<int64_t>(1, training_steps() - warmup_steps()));
    return std::max(0.0, left / decay_steps);
  }
};

}  // namespace

std::unique_ptr<Schedule> linear_with_warmup(const LinearWithWarmupOptions& options) {
  settings::check_settings(options, "LinearWithWarmup");
  return std::make_unique<LinearWithWarmup>(options);
}

}  // namespace stretto::optim
