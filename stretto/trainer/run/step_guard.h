#pragma once

#include <optional>
#include <string>

#include "stretto/config/recipe.h"
#include "stretto/tensor/state.h"

namespace stretto::trainer {

// Checks the global loss and gradient norm of each step before the update: training.on_nonfinite and
// on_spike. All ranks reach the same verdict, because they check the same numbers.
class StepGuard {
 public:
  enum class Verdict { take, skip, rollback };

  explicit StepGuard(const TrainingConfig& config);

  // `loss`: mean over the global batch; `norm`: of the gradient of that mean; `culprit`: appended to the
  // reason. If the verdict is not `take`, reason() returns why. Throws Error if the policy is to stop, or
  // after too many skips or rollbacks.
  Verdict judge(double loss, double norm, int64_t step, const std::string& culprit);

  const std::string& reason() const { return reason_; }

  // Factor on the learning rate: rollback_lr_factor to the power of the number of rollbacks.
  double lr_scale() const;

  void add_state(State& state) const;
  void resume(const State& state);

 private:
  Verdict act(OnNonfinite policy, int64_t step, const std::string& advice);
  void remember(double loss, double norm);

  const TrainingConfig& config_;
  std::string reason_;
  double mean_loss_ = 0;  // running means of the steps taken
  double mean_norm_ = 0;
  int64_t taken_ = 0;
  int64_t skipped_in_a_row_ = 0;
  int64_t rollbacks_ = 0;
};

}  // namespace stretto::trainer
