#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace stretto::optim {

// What a schedule sets for one step.
struct StepRates {
  double lr = 0;                        // times each parameter's own lr_factor
  std::optional<double> momentum = {};  // momentum, or beta1 of the Adam family; unset: the optimizer's own
};

// How learning rate and momentum move over a run. Steps are optimizer steps, and their count is the optimizer's: a
// schedule keeps only the state that does not follow from it. Implementations are in schedules/, one per file.
class Schedule {
 public:
  virtual ~Schedule() = default;

  // The name that recipes use: "LinearWithWarmup".
  virtual std::string name() const = 0;

  // Once, before the first step. base: the optimizer's own rates; total_steps: of the whole run. Throws ConfigError where
  // the schedule's options do not fit the run.
  void start(const StepRates& base, int64_t total_steps);

  // The run has become shorter or longer: it was resumed with other batches.
  void set_total_steps(int64_t total_steps) { total_steps_ = total_steps; }
  int64_t total_steps() const { return total_steps_; }

  // What the step that follows `steps_done` steps uses. REQUIRES: started.
  virtual StepRates rates(int64_t steps_done) const = 0;

  // For schedules that follow a metric: its name, where it is not checkpoint.monitor; and its value after each evaluation, the
  // same on all ranks.
  virtual std::string monitor() const { return ""; }
  virtual void observe(double /*metric*/) {}

  // Before observe(): the loss of the same evaluation, if it has one, for schedules that break ties by it.
  virtual void observe_loss(double /*loss*/) {}

  // Why the run ends now; empty while it goes on. Asked at the start and after each evaluation.
  virtual std::string end_reason() const { return ""; }

  // The state to save with a checkpoint, null if there is none, and its return.
  virtual nlohmann::json state() const { return nullptr; }
  virtual void resume(const nlohmann::json& /*state*/) {}

 protected:
  virtual void on_start() {}
  // Throws ConfigError where the optimizer has no momentum to move.
  void require_momentum() const;
  const StepRates& base() const { return base_; }

 private:
  StepRates base_;
  int64_t total_steps_ = 0;
};

}  // namespace stretto::optim
