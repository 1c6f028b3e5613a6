#pragma once

#include <optional>

#include "stretto/optim_config/schedule.h"
#include "stretto/settings/fields.h"

namespace stretto::optim {

// The length of a warm-up, given by one of the first two or none, and of the whole schedule.
struct Warmup {
  std::optional<int64_t> num_warmup_steps = {};
  std::optional<double> warmup_ratio = {};         // as a fraction of all steps, rounded up
  std::optional<int64_t> num_training_steps = {};  // unset: the run's
  int64_t constant_steps = 0;                      // the last of them, in which the rate is the lowest
  double start = 0;                                // the first rate, as a fraction of lr
  bool is_logarithmic = false;                     // else linear
};

// The two settings of a warm-up, for the options of schedules that have one.
void declare_warmup(settings::Fields& field, std::optional<int64_t>& num_warmup_steps,
                    std::optional<double>& warmup_ratio);
// The setting warmup_type: "linear" or "log"; unset: linear.
void declare_warmup_type(settings::Fields& field, std::optional<std::string>& warmup_type);
// The length of a schedule that ends.
void declare_training_steps(settings::Fields& field, std::optional<int64_t>& num_training_steps);
// Throws ConfigError if both are given.
void check_warmup(const std::optional<int64_t>& num_warmup_steps, const std::optional<double>& warmup_ratio);

// Base of transformers' schedules: from 0 (or Warmup::start) to lr over the warm-up, then a factor on lr. The
// warm-up is linear, or with the logarithm of the steps like that of DeepSpeed's schedules.
class WarmupSchedule : public Schedule {
 public:
  StepRates rates(int64_t steps_done) const final;

 protected:
  explicit WarmupSchedule(const Warmup& warmup) : warmup_(warmup) {}
  // REQUIRES: steps_done >= warmup_steps().
  virtual double factor_after_warmup(int64_t steps_done) const = 0;
  // The steps at which the schedule ends: num_training_steps, or those of the run.
  int64_t training_steps() const { return warmup_.num_training_steps.value_or(total_steps()); }
  // The fraction of the steps after the warm-up and before the constant steps that are done: 1 at the end.
  double progress(int64_t steps_done) const;
  int64_t warmup_steps() const { return warmup_steps_; }
  // A ratio refers to num_training_steps, or the number of steps at the start of the run.
  void on_start() override;

 private:
  // The part of the warm-up that the rate has risen.
  double risen(int64_t steps_done) const;

  Warmup warmup_;
  int64_t warmup_steps_ = 0;
};

}  // namespace stretto::optim
