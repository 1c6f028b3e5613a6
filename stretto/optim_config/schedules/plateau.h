#pragma once

#include <memory>
#include <optional>

#include "stretto/optim_config/schedule.h"
#include "stretto/settings/fields.h"

namespace stretto::optim {

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

// lr until `patience` evaluations without improvement have passed, then lr times factor, and so on:
// torch.optim.lr_scheduler.ReduceLROnPlateau, counted in evaluations. mode auto: min if monitor is unset or ends in "loss".
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

// The same with Flair's settings: any better value is an improvement, as is the best value with a smaller loss, the first reduction waits initial_extra_patience
// evaluations longer, and the run ends when the rate falls below min_learning_rate.
std::unique_ptr<Schedule> anneal_on_plateau(const AnnealOnPlateauOptions& options);

}  // namespace stretto::optim
