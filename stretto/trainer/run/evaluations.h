#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "stretto/trainer/api/step_report.h"
#include "stretto/trainer/run/validation.h"

namespace stretto::trainer {

class EvaluationProcess;
struct Session;

// The evaluations of a run and their effects: records, the models that are kept, the schedule and callbacks.
//
// A process of its own evaluates a snapshot, a file in <output>/evaluating, if evaluate.async is set. A
// result is recorded when it arrives, with the step of the snapshot, and the models that it selects are
// written from the file. The schedule and callbacks see it just before the next evaluation or at the end, so
// that the steps of a run do not depend on the speed of evaluations; training waits there if it has not
// arrived.
class Evaluations {
 public:
  explicit Evaluations(Session& session);
  ~Evaluations();

  // Runs evaluate.sanity_steps and evaluate.at_start before the first step. Collective.
  void at_start();
  // Records the evaluation before the first step.
  void record_start();
  // Starts the process that evaluates. After a resume or a rollback, continues with the pending evaluation of
  // the session. Collective.
  void begin();

  // Whether this rank requests collect() after the next step, because the result has arrived.
  bool arrived();
  // Evaluates the weights after this step, or submits them; what is pending takes effect before. Collective.
  void evaluate(const StepReport& report);
  // Waits for the result of the pending evaluation and records it. Collective.
  void collect();
  // Like collect(); the result then takes effect. Collective.
  void settle();
  // Prepares the state of the session for a checkpoint after `step`. If the run `stops`, the pending
  // evaluation is repeated after a resume, from its snapshot; else it is waited for, unless it is of this
  // step and can be repeated from the checkpoint. Collective.
  void before_checkpoint(int64_t step, bool stops);

 private:
  bool is_async() const { return recipe_.evaluate.async; }
  bool is_computed() const;
  void start_process();
  void submit(const StepReport& report);
  void save_snapshot(int64_t step);
  std::filesystem::path snapshot(int64_t step) const;
  void remove_snapshots_except(int64_t step) const;
  void poll(std::chrono::milliseconds patience);
  Validated wait();
  bool record(const StepReport& at, const Validated& result, double train_loss);
  void save_selected(int64_t step, bool due);
  void take_effect(const Metrics& metrics, double train_loss);
  std::string may_be_nonfinite() const;

  Session& session_;
  const Recipe& recipe_;
  std::optional<Validated> at_start_;           // until it is recorded
  std::unique_ptr<EvaluationProcess> process_;  // on rank 0, with evaluate.async
  nlohmann::json reply_;  // of that process to the pending evaluation: its result or an error; null: none yet
};

}  // namespace stretto::trainer
