#include "stretto/optim_config/schedule_registry.h"

#include "stretto/base/registry.h"
#include "stretto/optim_config/schedules.h"
#include "stretto/settings/check_settings.h"

namespace stretto::optim {
namespace {

Registry<ScheduleKind>& registry() {
  static Registry<ScheduleKind> schedules(
      "a schedule",
      {
          schedule_kind("LinearWithWarmup", "up to lr, then linear to 0", linear_with_warmup),
          schedule_kind("Constant", "lr throughout", constant),
          schedule_kind("ConstantWithWarmup", "up to lr, then lr", constant_with_warmup),
          schedule_kind("CosineWithWarmup", "up to lr, then along a cosine", cosine_with_warmup),
          schedule_kind("CosineWithHardRestartsWithWarmup", "up to lr, then falling cosines",
                        cosine_with_hard_restarts),
          schedule_kind("PolynomialDecayWithWarmup", "up to lr, then a polynomial down to lr_end",
                        polynomial_decay),
          schedule_kind("InverseSQRT", "up to lr, then by the inverse square root of the steps",
                        inverse_sqrt),
          schedule_kind("StepLR", "a factor after every step_size steps", step_lr),
          schedule_kind("LinearLR", "a factor that changes linearly, then stays", linear_lr),
          schedule_kind("ExponentialLR", "a factor at every step", exponential_lr),
          schedule_kind("CosineAnnealingLR", "along a cosine to eta_min and back", cosine_annealing_lr),
          schedule_kind("CosineAnnealingWarmRestarts", "along a cosine to eta_min, then again from lr",
                        cosine_annealing_warm_restarts),
          schedule_kind("CyclicLR", "cycles between two rates", cyclic_lr),
          schedule_kind("OneCycleLR", "up to max_lr, then far below the first rate", one_cycle_lr),
          schedule_kind("ReduceLROnPlateau", "a factor whenever evaluations do not improve",
                        reduce_lr_on_plateau),
          schedule_kind("AnnealOnPlateau", "ReduceLROnPlateau with Flair's rules", anneal_on_plateau),
      });
  return schedules;
}

}  // namespace

void register_schedule(ScheduleKind kind) { registry().add(std::move(kind)); }

std::vector<settings::Kind> schedule_kinds() {
  std::vector<settings::Kind> kinds;
  for (const ScheduleKind& schedule : registry().entries()) kinds.push_back(schedule.kind);
  return kinds;
}

std::unique_ptr<Schedule> make_schedule(const settings::Choice& choice) {
  const settings::Settings& settings = choice.settings();
  settings::check_settings(settings, choice.type);
  return registry().at(choice.type, "scheduler").make(settings);
}

}  // namespace stretto::optim
