#include "stretto/optim_config/schedules/warmup.h"

#include <algorithm>
#include <cmath>

#include "stretto/settings/check_settings.h"

namespace stretto::optim {

void declare_warmup(settings::Fields& field, std::optional<int64_t>& num_warmup_steps,
                    std::optional<double>& warmup_ratio) {
  field("num_warmup_steps", num_warmup_steps, "optimizer steps until lr is reached",
        settings::at_least(0).at_most(1e9));
  field("warmup_ratio", warmup_ratio, "num_warmup_steps as a fraction of all steps; set one of the two",
        settings::at_least(0).below(1));
}

void declare_warmup_type(settings::Fields& field, std::optional<std::string>& warmup_type) {
  field("warmup_type", warmup_type, "log: the warm-up rises with the logarithm of the steps; unset: linear",
        settings::one_of({"linear", "log"}));
}

void declare_training_steps(settings::Fields& field, std::optional<int64_t>& num_training_steps) {
  field("num_training_steps", num_training_steps, "optimizer steps of the schedule; unset: all of the run",
        settings::at_least(1).at_most(1e9));
}

void check_warmup(const std::optional<int64_t>& num_warmup_steps, const std::optional<double>& warmup_ratio) {
  if (num_warmup_steps && warmup_ratio)
    throw settings::SettingError("warmup_ratio", "the warm-up is set twice; remove this or num_warmup_steps");
}

void WarmupSchedule::on_start() {
  warmup_steps_ = warmup_.num_warmup_steps.value_or(static_cast<int64_t>(
      std::ceil(warmup_.warmup_ratio.value_or(0) * static_cast<double>(training_steps()))));
}

StepRates WarmupSchedule::rates(int64_t steps_done) const {
  if (steps_done >= warmup_steps_) return {.lr = base().lr * factor_after_warmup(steps_done)};
  return {.lr = base().lr * (warmup_.start + (1 - warmup_.start) * risen(steps_done))};
}

double WarmupSchedule::risen(int64_t steps_done) const {
  const auto done = static_cast<double>(steps_done), all = static_cast<double>(warmup_steps_);
  return warmup_.is_logarithmic ? std::log(std::max(1.0, done)) / std::log(std::max(2.0, all)) : done / all;
}

double WarmupSchedule::progress(int64_t steps_done) const {
  return static_cast<double>(steps_done - warmup_steps_) /
         static_cast<double>(std::max<int64_t>(1, training_steps() - warmup_steps_ - warmup_.constant_steps));
}

}  // namespace stretto::optim
