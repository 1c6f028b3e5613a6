#include <cmath>

#include "stretto/optim_config/schedules.h"
#include "stretto/optim_config/schedules/warmup.h"
#include "stretto/settings/check_settings.h"

namespace stretto::optim {

using settings::at_least;

void InverseSqrtOptions::fields(settings::Fields& field) {
  declare_warmup(field, num_warmup_steps, warmup_ratio);
  field("timescale", timescale, "steps; unset: those of the warm-up, or 10000 without one",
        at_least(1).at_most(1e9));
}

void InverseSqrtOptions::check() const { check_warmup(num_warmup_steps, warmup_ratio); }

namespace {

class InverseSqrt : public WarmupSchedule {
 public:
  explicit InverseSqrt(const InverseSqrtOptions& options)
      : WarmupSchedule({options.num_warmup_steps, options.warmup_ratio}), options_(options) {}
  std::string name() const override { return "InverseSQRT"; }

 private:
  double factor_after_warmup(int64_t steps_done) const override {
    const int64_t timescale = options_.timescale.value_or(warmup_steps() > 0 ? warmup_steps() : 10'000);
    const int64_t shifted = steps_done + timescale - warmup_steps();
    return 1 / std::sqrt(static_cast<double>(shifted) / static_cast<double>(timescale));
  }
  InverseSqrtOptions options_;
};

}  // namespace

std::unique_ptr<Schedule> inverse_sqrt(const InverseSqrtOptions& options) {
  settings::check_settings(options, "InverseSQRT");
  return std::make_unique<InverseSqrt>(options);
}

}  // namespace stretto::optim
