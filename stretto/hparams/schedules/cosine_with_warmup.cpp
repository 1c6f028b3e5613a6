#include "stretto/hparams/schedules/cosine_with_warmup.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "stretto/declare/check_settings.h"
#include "stretto/hparams/schedules/warmup.h"

namespace stretto::optim {

using declare::above;

void CosineWithWarmupOptions::fields(declare::Fields& field) {
  declare_warmup(field, num_warmup_steps, warmup_ratio);
  field("num_cycles", num_cycles, "waves of the cosine; 0.5: from lr down to 0", above(0));
}

void CosineWithWarmupOptions::check() const { check_warmup(num_warmup_steps, warmup_ratio); }

namespace {

class CosineWithWarmup : public WarmupSchedule {
 public:
  explicit CosineWithWarmup(const CosineWithWarmupOptions& options)
      : WarmupSchedule({options.num_warmup_steps, options.warmup_ratio}), options_(options) {}
  std::string name() const override { return "CosineWithWarmup"; }

 private:
  double factor_after_warmup(int64_t steps_done) const override {
    const double angle = std::numbers::pi * options_.num_cycles * 2 * progress(steps_done);
    return std::max(0.0, 0.5 * (1 + std::cos(angle)));
  }
  CosineWithWarmupOptions options_;
};

}  // namespace

std::unique_ptr<Schedule> cosine_with_warmup(const CosineWithWarmupOptions& options) {
  declare::check_settings(options, "CosineWithWarmup");
  return std::make_unique<CosineWithWarmup>(options);
}

}  // namespace stretto::optim
