#include <cmath>

#include "stretto/optim_config/schedules.h"
#include "stretto/settings/check_settings.h"

namespace stretto::optim {

using settings::above;
using settings::at_least;
using settings::one_of;

void CyclicLrOptions::fields(settings::Fields& field) {
  field("base_lr", base_lr, "lowest learning rate; unset: optimizer.lr", at_least(0));
  field("max_lr", max_lr, "highest learning rate; must be given", above(0));
  field("step_size_up", step_size_up, "steps from base_lr to max_lr", at_least(1).at_most(1e9));
  field("step_size_down", step_size_down, "steps from max_lr to base_lr; unset: step_size_up",
        at_least(1).at_most(1e9));
  field("mode", mode, "triangular2: halves the amplitude per cycle; exp_range: multiplies it by gamma^steps",
        one_of({"triangular", "triangular2", "exp_range"}));
  field("gamma", gamma, "base of exp_range", above(0));
  field("cycle_momentum", cycle_momentum,
        "move momentum, or beta1, from max_momentum to base_momentum and back");
  field("base_momentum", base_momentum, "lowest momentum", at_least(0).below(1));
  field("max_momentum", max_momentum, "highest momentum", at_least(0).below(1));
}

void CyclicLrOptions::check() const {
  if (!max_lr) throw settings::SettingError("max_lr", "a value is required");
}

namespace {

class CyclicLr : public Schedule {
 public:
  explicit CyclicLr(const CyclicLrOptions& options) : options_(options) {}
  std::string name() const override { return "CyclicLR"; }
  StepRates rates(int64_t steps_done) const override {
    const auto up = static_cast<double>(options_.step_size_up);
    const double length = up + static_cast<double>(options_.step_size_down.value_or(options_.step_size_up));
    const double cycles = static_cast<double>(steps_done) / length;
    const double cycle = std::floor(1 + cycles), part = 1 + cycles - cycle, ratio = up / length;
    const double height =
        (part <= ratio ? part / ratio : (part - 1) / (ratio - 1)) * scale(cycle, steps_done);
    const double low = options_.base_lr.value_or(base().lr);
    StepRates rates = {.lr = low + (*options_.max_lr - low) * height};
    if (options_.cycle_momentum)
      rates.momentum = options_.max_momentum - (options_.max_momentum - options_.base_momentum) * height;
    return rates;
  }

 private:
  void on_start() override {
    if (options_.cycle_momentum) require_momentum();
  }
  double scale(double cycle, int64_t steps_done) const {
    if (options_.mode == "triangular2") return 1 / std::pow(2.0, cycle - 1);
    if (options_.mode == "exp_range") return std::pow(options_.gamma, static_cast<double>(steps_done));
    return 1;
  }

  CyclicLrOptions options_;
};

}  // namespace

std::unique_ptr<Schedule> cyclic_lr(const CyclicLrOptions& options) {
  settings::check_settings(options, "CyclicLR");
  return std::make_unique<CyclicLr>(options);
}

}  // namespace stretto::optim
