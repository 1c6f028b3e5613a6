#pragma once

#include <optional>

#include "stretto/base/precision.h"
#include "stretto/tensor/state.h"

namespace stretto::parallel {

// The loss scale of a run in fp16, with torch.amp.GradScaler's rule: it grows after growth_interval steps
// without an overflow, and is lowered when the gradients overflow. All ranks keep the same scale, because
// they judge the same gradients. In other precisions it stays 1.
class LossScale {
 public:
  // nullopt: not in use. Throws ConfigError for options out of range.
  explicit LossScale(const std::optional<LossScaleOptions>& options);

  bool in_use() const { return options_.has_value(); }
  // What the loss of the next step is multiplied by; 1 if it is not in use.
  double value() const { return scale_; }
  // Steps without an update, because their gradients overflowed.
  int64_t skipped_steps() const { return skipped_; }

  // Call one of these after each step: its gradients were finite, or they overflowed and it is skipped.
  void count_finite();
  // Throws Error if the gradients have overflowed more than ten times in a row at a scale that is not lowered
  // further.
  void count_overflow();

  // The scalar "loss_scale", if the scale is in use or steps were skipped.
  void add_state(State& state) const;
  // Keeps the present state if `state` has no such scalar.
  void resume(const State& state);

 private:
  std::optional<LossScaleOptions> options_;
  float scale_ = 1;        // fp32, as torch's
  int64_t finite_ = 0;     // steps since the last overflow or growth
  int64_t tolerated_ = 0;  // overflows that did not lower the scale, since its last growth
  int64_t at_least_ = 0;   // overflows in a row at a scale that is not lowered
  int64_t skipped_ = 0;
};

// `loss` times `factor`. A loss in fp16 is widened first, because the product may be out of its range.
Tensor scaled_loss(const Tensor& loss, double factor);

}  // namespace stretto::parallel
