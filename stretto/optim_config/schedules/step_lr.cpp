#include <cmath>

#include "stretto/optim_config/schedules.h"
#include "stretto/settings/check_settings.h"

namespace stretto::optim {

using settings::at_least;

void StepLrOptions::fields(settings::Fields& field) {
  field("step_size", step_size, "steps between two reductions; must be given", at_least(1).at_most(1e9));
  field("gamma", gamma, "factor of each reduction", at_least(0));
}

void StepLrOptions::check() const {
  if (!step_size) throw settings::SettingError("step_size", "a value is required");
}

namespace {

class StepLr : public Schedule {
 public:
  explicit StepLr(const StepLrOptions& options) : options_(options) {}
  std::string name() const override { return "StepLR"; }
  StepRates rates(int64_t steps_done) const override {
    const int64_t times = steps_done / *options_.step_size;
    return {.lr = base().lr * std::pow(options_.gamma, static_cast<double>(times))};
  }

 private:
  StepLrOptions options_;
};

}  // namespace

std::unique_ptr<Schedule> step_lr(const StepLrOptions& options) {
  settings::check_settings(options, "StepLR");
  return std::make_unique<StepLr>(options);
}

}  // namespace stretto::optim
