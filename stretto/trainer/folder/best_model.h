#pragma once

#include <optional>

#include "stretto/checkpoint_format/manifest.h"
#include "stretto/config/recipe.h"
#include "stretto/tensor/state.h"
#include "stretto/trainer/run/monitor.h"

namespace stretto {

// Which evaluation was the best so far, by checkpoint.monitor.
class BestModel {
 public:
  // `setting`: what errors call checkpoint.monitor, with the place where it was set. Throws ConfigError for a metric that is not
  // built in if checkpoint.mode is auto.
  BestModel(const CheckpointConfig& config, const std::string& setting);

  // Whether the monitored metric is better than in all evaluations before; NaN never is. Throws ConfigError if it is
  // missing.
  bool improves(const Metrics& metrics, int64_t step, int64_t epoch);

  const Monitor& monitor() const { return monitor_; }
  const std::optional<Metrics>& metrics() const { return best_; }
  int64_t step() const { return step_; }    // of the best evaluation
  int64_t epoch() const { return epoch_; }  // 1 is the first

  // The monitored metric of the last evaluation, unless it was not finite.
  std::optional<checkpoint_format::Score> score() const;

  void add_state(State& state) const;
  void resume(const State& state);

  // After a rollback to `state`: restores the last evaluation. The best one is kept, because its model is still on
  // disk.
  void roll_back(const State& state);

 private:
  void read_last(const nlohmann::json& saved);

  Monitor monitor_;
  std::optional<Metrics> best_;
  int64_t step_ = 0, epoch_ = 0;
  std::optional<double> last_;
};

}  // namespace stretto
