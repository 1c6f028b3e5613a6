#include "stretto/optim_config/schedules.h"
#include "stretto/optim_config/schedules/warmup.h"
#include "stretto/settings/check_settings.h"

namespace stretto::optim {

void ConstantWithWarmupOptions::fields(settings::Fields& field) {
  declare_warmup(field, num_warmup_steps, warmup_ratio);
  declare_warmup_type(field, warmup_type);
}

void ConstantWithWarmupOptions::check() const { check_warmup(num_warmup_steps, warmup_ratio); }

namespace {

class ConstantWithWarmup : public WarmupSchedule {
 public:
  explicit ConstantWithWarmup(const ConstantWithWarmupOptions& options)
      : WarmupSchedule({.num_warmup_steps = options.num_warmup_steps,
                        .warmup_ratio = options.warmup_ratio,
                        .is_logarithmic = options.warmup_type == "log"}) {}
  std::string name() const override { return "ConstantWithWarmup"; }

 private:
  double factor_after_warmup(int64_t) const override { return 1; }
};

}  // namespace

std::unique_ptr<Schedule> constant_with_warmup(const ConstantWithWarmupOptions& options) {
  settings::check_settings(options, "ConstantWithWarmup");
  return std::make_unique<ConstantWithWarmup>(options);
}

}  // namespace stretto::optim
