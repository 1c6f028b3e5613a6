#pragma once

#include <optional>

#include "stretto/config/recipe.h"
#include "stretto/trainer/api/callback.h"
#include "stretto/trainer/run/monitor.h"

namespace stretto::trainer {

// Ends a run depending on a metric of its evaluations: section early_stopping of the recipe. Its state is in
// checkpoints, so that a run that it has ended does not continue when its command is repeated, unless the
// settings now allow more.
class EarlyStopping : public Callback {
 public:
  // If the section has no monitor, that of checkpoints is used. Throws ConfigError for a metric without a
  // known direction.
  explicit EarlyStopping(const Recipe& recipe);

  std::string name() const override { return "early_stopping"; }
  bool reads_parameters() const override { return false; }
  const trainer::Monitor& monitor() const { return monitor_; }

  void fit_start(FitContext& fit) override;
  void evaluation_end(FitContext& fit, const Metrics& metrics) override;
  void add_state(State& state) const override;
  void resume(const State& state) override;

 private:
  std::string reason_to_stop() const;

  EarlyStoppingConfig config_;
  trainer::Monitor monitor_;
  std::optional<double> best_;
  std::optional<double> last_;  // of the last evaluation
  int64_t waited_ = 0;          // evaluations without improvement
};

}  // namespace stretto::trainer
