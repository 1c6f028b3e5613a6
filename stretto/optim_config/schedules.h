#pragma once

#include <memory>
#include <optional>

#include "stretto/optim_config/schedule.h"
#include "stretto/settings/fields.h"

namespace stretto::optim {

// The bundled schedules, implemented in schedules/, one per file.

struct ConstantOptions {
  void fields(settings::Fields&) {}
  bool operator==(const ConstantOptions&) const = default;
};

// A constant rate, the optimizer's own learning rate.
std::unique_ptr<Schedule> constant(const ConstantOptions& options = {});

struct ConstantWithWarmupOptions {
  std::optional<int64_t> num_warmup_steps = {};
  std::optional<double> warmup_ratio = {};      // the same as a fraction of all steps; set one of the two
  std::optional<std::string> warmup_type = {};  // log: with the logarithm of the steps; unset: linear

  void fields(settings::Fields& field);
  void check() const;
  bool operator==(const ConstantWithWarmupOptions&) const = default;
};

// Linear from 0 to lr over the warm-up, then lr: transformers' get_constant_schedule_with_warmup.
std::unique_ptr<Schedule> constant_with_warmup(const ConstantWithWarmupOptions& options);

struct LinearWithWarmupOptions {
  std::optional<int64_t> num_warmup_steps = {};
  std::optional<double> warmup_ratio = {};         // the same as a fraction of all steps; set one of the two
  std::optional<int64_t> num_training_steps = {};  // at which the schedule ends; unset: the run's
  std::optional<std::string> warmup_type = {};     // log: with the logarithm of the steps; unset: linear

  void fields(settings::Fields& field);
  void check() const;
  bool operator==(const LinearWithWarmupOptions&) const = default;
};

// Linear from 0 to lr over the warm-up, then linear to 0 at the end: transformers'
// get_linear_schedule_with_warmup.
std::unique_ptr<Schedule> linear_with_warmup(const LinearWithWarmupOptions& options);

struct CosineWithWarmupOptions {
  std::optional<int64_t> num_warmup_steps = {};
  std::optional<double> warmup_ratio = {};         // the same as a fraction of all steps; set one of the two
  std::optional<int64_t> num_training_steps = {};  // at which the schedule ends; unset: the run's
  double num_cycles = 0.5;                      // waves of the cosine; 0.5: from lr down to the lowest rate
  double min_lr_rate = 0;                       // the lowest rate as a fraction of lr
  std::optional<double> min_lr = {};            // the lowest rate; set one of the two
  std::optional<int64_t> constant_steps = {};   // steps at the lowest rate, at the end of the schedule
  std::optional<double> warmup_start = {};      // the first rate of the warm-up as a fraction of lr; unset: 0
  std::optional<std::string> warmup_type = {};  // log: with the logarithm of the steps; unset: linear

  void fields(settings::Fields& field);
  void check() const;
  bool operator==(const CosineWithWarmupOptions&) const = default;
};

// Linear from 0 to lr over the warm-up, then lr times a cosine: transformers'
// get_cosine_schedule_with_warmup, and with min_lr or min_lr_rate its
// get_cosine_with_min_lr_schedule_with_warmup. With constant_steps it is Megatron's cosine; without them, and
// with warmup_start 1 / (num_warmup_steps + 1), NeMo's CosineAnnealing. start() throws ConfigError if min_lr
// is above lr, or if warm-up and constant_steps are longer than the schedule.
std::unique_ptr<Schedule> cosine_with_warmup(const CosineWithWarmupOptions& options);

struct CosineWithHardRestartsOptions {
  std::optional<int64_t> num_warmup_steps = {};
  std::optional<double> warmup_ratio = {};         // the same as a fraction of all steps; set one of the two
  std::optional<int64_t> num_training_steps = {};  // at which the schedule ends; unset: the run's
  int64_t num_cycles = 1;                          // cosine decays, each from lr to 0

  void fields(settings::Fields& field);
  void check() const;
  bool operator==(const CosineWithHardRestartsOptions&) const = default;
};

// Linear from 0 to lr over the warm-up, then decreasing cosines that restart at lr: transformers'
// get_cosine_with_hard_restarts_schedule_with_warmup.
std::unique_ptr<Schedule> cosine_with_hard_restarts(const CosineWithHardRestartsOptions& options);

struct PolynomialDecayOptions {
  std::optional<int64_t> num_warmup_steps = {};
  std::optional<double> warmup_ratio = {};         // the same as a fraction of all steps; set one of the two
  std::optional<int64_t> num_training_steps = {};  // at which the schedule ends; unset: the run's
  double lr_end = 1e-7;
  double power = 1;

  void fields(settings::Fields& field);
  void check() const;
  bool operator==(const PolynomialDecayOptions&) const = default;
};

// Linear from 0 to lr over the warm-up, then a polynomial down to lr_end at the end: transformers'
// get_polynomial_decay_schedule_with_warmup. start() throws ConfigError unless lr_end is below lr.
std::unique_ptr<Schedule> polynomial_decay(const PolynomialDecayOptions& options);

struct InverseSqrtOptions {
  std::optional<int64_t> num_warmup_steps = {};
  std::optional<double> warmup_ratio = {};  // the same as a fraction of all steps; set one of the two
  std::optional<int64_t> timescale = {};  // in steps; unset: the steps of the warm-up, or 10,000 without one

  void fields(settings::Fields& field);
  void check() const;
  bool operator==(const InverseSqrtOptions&) const = default;
};

// Linear from 0 to lr over the warm-up, then lr / sqrt(1 + steps since then / timescale):
// transformers' get_inverse_sqrt_schedule.
std::unique_ptr<Schedule> inverse_sqrt(const InverseSqrtOptions& options);

struct LinearLrOptions {
  double start_factor = 1.0 / 3;
  double end_factor = 1;
  int64_t total_iters = 5;  // steps from one factor to the other

  void fields(settings::Fields& field);
  bool operator==(const LinearLrOptions&) const = default;
};

// lr times a factor that changes linearly from start_factor to end_factor and then stays constant:
// torch.optim.lr_scheduler.LinearLR.
std::unique_ptr<Schedule> linear_lr(const LinearLrOptions& options);

struct StepLrOptions {
  std::optional<int64_t> step_size = {};  // steps; must be given
  double gamma = 0.1;

  void fields(settings::Fields& field);
  void check() const;
  bool operator==(const StepLrOptions&) const = default;
};

// lr times gamma after every step_size steps: torch.optim.lr_scheduler.StepLR.
std::unique_ptr<Schedule> step_lr(const StepLrOptions& options);

struct ExponentialLrOptions {
  std::optional<double> gamma = {};  // must be given

  void fields(settings::Fields& field);
  void check() const;
  bool operator==(const ExponentialLrOptions&) const = default;
};

// lr times gamma after every step: torch.optim.lr_scheduler.ExponentialLR.
std::unique_ptr<Schedule> exponential_lr(const ExponentialLrOptions& options);

struct CosineAnnealingLrOptions {
  std::optional<int64_t> t_max = {};  // steps from lr down to eta_min; unset: the whole run
  double eta_min = 0;

  void fields(settings::Fields& field);
  bool operator==(const CosineAnnealingLrOptions&) const = default;
};

// A cosine from lr to eta_min over t_max steps, and back: torch.optim.lr_scheduler.CosineAnnealingLR.
std::unique_ptr<Schedule> cosine_annealing_lr(const CosineAnnealingLrOptions& options);

struct CosineAnnealingWarmRestartsOptions {
  std::optional<int64_t> t_0 = {};  // steps until the first restart; must be given
  int64_t t_mult = 1;               // factor of the length of each period relative to the previous one
  double eta_min = 0;

  void fields(settings::Fields& field);
  void check() const;
  bool operator==(const CosineAnnealingWarmRestartsOptions&) const = default;
};

// A cosine from lr to eta_min, which restarts at lr: torch.optim.lr_scheduler.CosineAnnealingWarmRestarts
// (Loshchilov & Hutter 2017).
std::unique_ptr<Schedule> cosine_annealing_warm_restarts(const CosineAnnealingWarmRestartsOptions& options);

struct CyclicLrOptions {
  std::optional<double> base_lr = {};          // unset: the optimizer's lr
  std::optional<double> max_lr = {};           // must be given
  int64_t step_size_up = 2000;                 // steps from base_lr to max_lr
  std::optional<int64_t> step_size_down = {};  // steps back to base_lr; unset: step_size_up
  std::string mode = "triangular";  // or triangular2: halved per cycle; exp_range: times gamma^steps
  double gamma = 1;
  bool cycle_momentum = true;  // momentum, or beta1, goes from max_momentum to base_momentum and back
  double base_momentum = 0.8;
  double max_momentum = 0.9;

  void fields(settings::Fields& field);
  void check() const;
  bool operator==(const CyclicLrOptions&) const = default;
};

// Cycles between two rates (Smith 2017), like torch.optim.lr_scheduler.CyclicLR. start() throws ConfigError
// if cycle_momentum is set and the optimizer has no momentum.
std::unique_ptr<Schedule> cyclic_lr(const CyclicLrOptions& options);

struct OneCycleLrOptions {
  std::optional<double> max_lr = {};        // must be given
  std::optional<int64_t> total_steps = {};  // unset: the run's
  double pct_start = 0.3;                   // fraction of the steps in which lr rises
  std::string anneal_strategy = "cos";      // or linear
  bool cycle_momentum = true;               // momentum, or beta1, falls while lr rises
  double base_momentum = 0.85;
  double max_momentum = 0.95;
  double div_factor = 25;         // lr begins at max_lr / div_factor,
  double final_div_factor = 1e4;  // and ends at that / final_div_factor
  bool three_phase = false;       // return to the first lr symmetrically, then decrease

  void fields(settings::Fields& field);
  void check() const;
  bool operator==(const OneCycleLrOptions&) const = default;
};

// Rises to max_lr and decreases far below the first lr (Smith & Topin 2018), like
// torch.optim.lr_scheduler.OneCycleLR. start() throws ConfigError if cycle_momentum is set and the optimizer
// has no momentum, or if the run has more steps than total_steps.
std::unique_ptr<Schedule> one_cycle_lr(const OneCycleLrOptions& options);

struct ReduceLrOnPlateauOptions {
  std::optional<std::string> monitor = {};  // a metric of evaluations; unset: checkpoint.monitor
  std::string mode = "auto";                // min, max; auto: min for loss, max for scores
  double factor = 0.1;
  int64_t patience = 10;
  double threshold = 1e-4;
  std::string threshold_mode = "rel";
  int64_t cooldown = 0;
  double min_lr = 0;
  double eps = 1e-8;

  void fields(settings::Fields& field);
  bool operator==(const ReduceLrOnPlateauOptions&) const = default;
};

// Multiplies lr by factor after more than `patience` evaluations without improvement, repeatedly:
// torch.optim.lr_scheduler.ReduceLROnPlateau, counted in evaluations. mode auto: min if monitor is unset or
// ends in "loss".
std::unique_ptr<Schedule> reduce_lr_on_plateau(const ReduceLrOnPlateauOptions& options);

struct AnnealOnPlateauOptions {
  std::optional<std::string> monitor = {};
  std::string mode = "auto";
  double anneal_factor = 0.5;
  int64_t patience = 3;
  int64_t initial_extra_patience = 0;
  double min_learning_rate = 1e-4;

  void fields(settings::Fields& field);
  bool operator==(const AnnealOnPlateauOptions&) const = default;
};

// Like reduce_lr_on_plateau, with Flair's rules: any better value is an improvement, as is an equal value
// with a smaller loss; the first reduction waits initial_extra_patience evaluations longer; and the run ends
// when the rate falls below min_learning_rate.
std::unique_ptr<Schedule> anneal_on_plateau(const AnnealOnPlateauOptions& options);

}  // namespace stretto::optim
