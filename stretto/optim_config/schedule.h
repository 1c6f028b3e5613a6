#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace stretto::optim {

// The rates that a schedule sets for one step.
struct StepRates {
  double lr = 0;                        // multiplied by each parameter's lr_factor
  std::optional<double> momentum = {};  // momentum, or beta1 of the Adam family; nullopt: the optimizer's own
};

// The learning rate and momentum as functions of the step. Steps are optimizer steps, counted by the
// optimizer: a schedule keeps only the state that does not follow from the count. Implementations are in
// schedules/, one per file.
class Schedule {
 public:
  virtual ~Schedule() = default;

  // The name that recipes use: "LinearWithWarmup".
  virtual std::string name() const = 0;

  // Call it once, before the first step. base: the optimizer's own rates; total_steps: of the whole run.
  // Throws ConfigError if the options of the schedule are invalid for the run.
  void start(const StepRates& base, int64_t total_steps);

  // Changes the length of the run, for a run that was resumed with other batches.
  void set_total_steps(int64_t total_steps) { total_steps_ = total_steps; }
  int64_t total_steps() const { return total_steps_; }

  // The rates of the step after `steps_done` steps. REQUIRES: started.
  virtual StepRates rates(int64_t steps_done) const = 0;

  // For schedules that follow a metric: its name ("": checkpoint.monitor), and its value after each
  // evaluation, equal on all ranks.
  virtual std::string monitor() const { return ""; }
  virtual void observe(double /*metric*/) {}

  // Called before observe() with the loss of the same evaluation, if it has one, for schedules that break
  // ties by it.
  virtual void observe_loss(double /*loss*/) {}

  // The reason to end the run now; "" to continue. Called at the start and after each evaluation.
  virtual std::string end_reason() const { return ""; }

  // Return the state to save with a checkpoint (null if there is none), and restore it.
  virtual nlohmann::json state() const { return nullptr; }
  virtual void resume(const nlohmann::json& /*state*/) {}

 protected:
  virtual void on_start() {}
  // Throws ConfigError if the optimizer has no momentum.
  void require_momentum() const;
  const StepRates& base() const { return base_; }

 private:
  StepRates base_;
  int64_t total_steps_ = 0;
};

}  // namespace stretto::optim
