#pragma once

#include <optional>
#include <string>

#include "stretto/archive/manifest.h"
#include "stretto/config/recipe.h"
#include "stretto/tensor/state.h"
#include "stretto/trainer/module.h"

namespace stretto {

// Which evaluation was the best so far, by checkpoint.monitor.
class BestModel {
 public:
  // Throws ConfigError for a metric that is not one of stretto's where checkpoint.mode leaves open which way it improves.
  explicit BestModel(const CheckpointConfig& config);

  // True where these metrics are better than all before. Throws ConfigError for a monitor that was not measured.
  bool improves(const Metrics& metrics, int64_t epoch);

  const std::optional<Metrics>& metrics() const { return best_; }
  int64_t epoch() const { return epoch_; }  // 1 is the first

  // The monitored metric of the last evaluation.
  std::optional<archive::Score> score() const;

  void add_state(State& state) const;
  void resume(const State& state);

  // After the steps since `state` were taken back: the last evaluation is that of then. The best stays: its weights were
  // good when they were evaluated, and are still the model on disk.
  void go_back(const State& state);

 private:
  std::string monitor_;
  bool larger_is_better_;
  std::optional<Metrics> best_;
  int64_t epoch_ = 0;
  std::optional<double> last_;
};

}  // namespace stretto
