#include <cmath>
#include <numbers>

#include "stretto/optim_config/schedules.h"
#include "stretto/settings/check_settings.h"

namespace stretto::optim {

using settings::at_least;

void CosineAnnealingLrOptions::fields(settings::Fields& field) {
  field("T_max", t_max, "steps from lr to eta_min; unset: all of the run", at_least(1).at_most(1e9));
  field("eta_min", eta_min, "lowest learning rate", at_least(0));
}

namespace {

class CosineAnnealingLr : public Schedule {
 public:
  explicit CosineAnnealingLr(const CosineAnnealingLrOptions& options) : options_(options) {}
  std::string name() const override { return "CosineAnnealingLR"; }
  StepRates rates(int64_t steps_done) const override {
    const auto half_period = static_cast<double>(options_.t_max.value_or(total_steps()));
    const double angle = std::numbers::pi * static_cast<double>(steps_done) / half_period;
    return {.lr = options_.eta_min + (base().lr - options_.eta_min) * (1 + std::cos(angle)) / 2};
  }

 private:
  CosineAnnealingLrOptions options_;
};

}  // namespace

std::unique_ptr<Schedule> cosine_annealing_lr(const CosineAnnealingLrOptions& options) {
  settings::check_settings(options, "CosineAnnealingLR");
  return std::make_unique<CosineAnnealingLr>(options);
}

}  // namespace stretto::optim
