#include <cmath>
#include <numbers>

#include "stretto/base/error.h"
#include "stretto/optim_config/schedules.h"
#include "stretto/settings/check_settings.h"

namespace stretto::optim {

using settings::above;
using settings::at_least;
using settings::one_of;

void OneCycleLrOptions::fields(settings::Fields& field) {
  field("max_lr", max_lr, "highest learning rate; must be given", above(0));
  field("total_steps", total_steps, "steps of the cycle; unset: all of the run", at_least(1).at_most(1e9));
  field("pct_start", pct_start, "part of the steps in which the learning rate rises", at_least(0).at_most(1));
  field("anneal_strategy", anneal_strategy, "shape of the rise and the fall", one_of({"cos", "linear"}));
  field("cycle_momentum", cycle_momentum,
        "move momentum, or beta1, from max_momentum to base_momentum and back");
  field("base_momentum", base_momentum, "lowest momentum", at_least(0).below(1));
  field("max_momentum", max_momentum, "highest momentum", at_least(0).below(1));
  field("div_factor", div_factor, "the first learning rate is max_lr / div_factor", above(0));
  field("final_div_factor", final_div_factor, "the last learning rate is the first / final_div_factor",
        above(0));
  field("three_phase", three_phase,
        "return to the first learning rate as fast as it rose, then fall to the last");
}

void OneCycleLrOptions::check() const {
  if (!max_lr) throw settings::SettingError("max_lr", "a value is required");
}

namespace {

class OneCycleLr : public Schedule {
 public:
  explicit OneCycleLr(const OneCycleLrOptions& options) : options_(options) {}
  std::string name() const override { return "OneCycleLR"; }
  StepRates rates(int64_t steps_done) const override {
    const double first_lr = *options_.max_lr / options_.div_factor;
    const double last_lr = first_lr / options_.final_div_factor;
    const auto steps = static_cast<double>(options_.total_steps.value_or(total_steps()));
    const double top = options_.pct_start * steps - 1, end = steps - 1;
    const auto now = static_cast<double>(steps_done);
    const double high = options_.max_momentum, low = options_.base_momentum;
    if (now <= top) return between({0, first_lr, high}, {top, *options_.max_lr, low}, now);
    if (!options_.three_phase) return between({top, *options_.max_lr, low}, {end, last_lr, high}, now);
    const double back = 2 * options_.pct_start * steps - 2;
    if (now <= back) return between({top, *options_.max_lr, low}, {back, first_lr, high}, now);
    return between({back, first_lr, high}, {end, last_lr, high}, now);
  }

 private:
  struct Corner {
    double step, lr, momentum;
  };

  StepRates between(const Corner& from, const Corner& to, double now) const {
    const double part = to.step > from.step ? (now - from.step) / (to.step - from.step) : 1;
    StepRates rates = {.lr = anneal(from.lr, to.lr, part)};
    if (options_.cycle_momentum) rates.momentum = anneal(from.momentum, to.momentum, part);
    return rates;
  }
  double anneal(double from, double to, double part) const {
    if (options_.anneal_strategy == "linear") return (to - from) * part + from;
    return to + (from - to) / 2 * (std::cos(std::numbers::pi * part) + 1);
  }
  void on_start() override {
    if (options_.cycle_momentum) require_momentum();
    if (options_.total_steps.value_or(total_steps()) >= total_steps()) return;
    throw ConfigError(
        "{}: the run has {} steps, but total_steps is {}; omit it, or set it to at least the number of steps",
        name(), total_steps(), *options_.total_steps);
  }

  OneCycleLrOptions options_;
};

}  // namespace

std::unique_ptr<Schedule> one_cycle_lr(const OneCycleLrOptions& options) {
  settings::check_settings(options, "OneCycleLR");
  return std::make_unique<OneCycleLr>(options);
}

}  // namespace stretto::optim
