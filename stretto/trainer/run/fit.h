#pragma once

#include <memory>
#include <optional>
#include <string>

#include "stretto/trainer/api/trainer.h"
#include "stretto/trainer/folder/checkpoints.h"
#include "stretto/trainer/run/evaluations.h"
#include "stretto/trainer/run/session.h"
#include "stretto/trainer/run/training_run.h"

namespace stretto::trainer {

// One call of Trainer::fit(): the loop around the steps of a run.
class Fit {
 public:
  // `from`: what the run resumes from; null: it starts from the beginning.
  Fit(const SessionParts& parts, std::unique_ptr<RunCheckpoint> from);
  FitResult run();
  void catch_up() { session_->engine.weights().catch_up(); }

 private:
  bool over() const { return session_->steps_done() >= session_->total_steps() || !result_.ended_by.empty(); }
  void warn_of_unused_optimizer() const;
  void warn_of_settings() const;
  void require_first_evaluation() const;
  void begin();
  void prepare_callbacks();
  bool was_finished();
  void leave_folder();
  bool is_complete();
  void claim_folder();
  void begin_records(int64_t steps_done);
  Requests requests();
  void roll_back(const std::string& reason);
  void after(const StepReport& report);
  void evaluate_model(const StepReport& report);
  void save_last_weights();
  void finish_files();
  void write_record(const StepReport& report);
  void end_if_requested();

  const Recipe& recipe_;
  const Mesh& mesh_;
  const bool continues_folder_;  // the run resumes from a checkpoint in its output folder
  Checkpoints checkpoints_;  // before the session, so that signals are requests while a checkpoint is read
  std::unique_ptr<Session> session_;
  TrainingRun run_;
  StepLog& step_log_;  // these are the session's
  KeptModels& models_;
  Evaluations evaluations_;
  trainer::Callbacks& callbacks_;
  FitResult result_;
  bool claimed_folder_ = false;
};

}  // namespace stretto::trainer
