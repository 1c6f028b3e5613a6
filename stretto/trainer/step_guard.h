#pragma once

#include <optional>
#include <string>

#include "stretto/config/recipe.h"
#include "stretto/tensor/state.h"

namespace stretto {

// Judges each step's global loss and gradient norm before the update: training.on_nonfinite and on_spike. All ranks come
// to the same verdict, because they judge the same numbers.
class StepGuard {
 public:
  enum class Verdict { take, skip, rollback };

  explicit StepGuard(const TrainingConfig& config);

  // `loss`: mean over the global batch; `norm`: of the gradient of that mean. What is wrong with a step that is not to be
  // taken is in reason() afterwards. Throws Error where the policy is to stop, and where skipping or going back has not
  // helped.
  Verdict judge(double loss, double norm, int64_t step, const std::string& culprit);

  const std::string& reason() const { return reason_; }

  // Lower with every rollback.
  double lr_scale() const;

  void add_state(State& state) const;
  void resume(const State& state);

 private:
  Verdict act(const std::string& policy, int64_t step, const std::string& advice);
  void remember(double loss, double norm);

  const TrainingConfig& config_;
  std::string reason_;
  double mean_loss_ = 0;  // running means of the steps taken
  double mean_norm_ = 0;
  int64_t taken_ = 0;
  int64_t skipped_in_a_row_ = 0;
  int64_t rollbacks_ = 0;
};

}  // namespace stretto
