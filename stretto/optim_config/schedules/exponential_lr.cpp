#include <cmath>

#include "stretto/optim_config/schedules.h"
#include "stretto/settings/check_settings.h"

namespace stretto::optim {

using settings::at_least;

void ExponentialLrOptions::fields(settings::Fields& field) {
  field("gamma", gamma, "factor of each step; must be given", at_least(0));
}

void ExponentialLrOptions::check() const {
  if (!gamma) throw settings::SettingError("gamma", "a value is required");
}

namespace {

class ExponentialLr : public Schedule {
 public:
  explicit ExponentialLr(const ExponentialLrOptions& options) : options_(options) {}
  std::string name() const override { return "ExponentialLR"; }
  StepRates rates(int64_t steps_done) const override {
    return {.lr = base().lr * std::pow(*options_.gamma, static_cast<double>(steps_done))};
  }

 private:
  ExponentialLrOptions options_;
};

}  // namespace

std::unique_ptr<Schedule> exponential_lr(const ExponentialLrOptions& options) {
  settings::check_settings(options, "ExponentialLR");
  return std::make_unique<ExponentialLr>(options);
}

}  // namespace stretto::optim
