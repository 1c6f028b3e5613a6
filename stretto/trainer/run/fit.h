#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "stretto/base/weighted_mean.h"
#include "stretto/trainer/api/callbacks.h"
#include "stretto/trainer/api/trainer.h"
#include "stretto/trainer/folder/checkpoints.h"
#include "stretto/trainer/folder/kept_models.h"
#include "stretto/trainer/folder/run_folder.h"
#include "stretto/trainer/records/step_log.h"
#include "stretto/trainer/run/evaluator.h"
#include "stretto/trainer/run/training_run.h"

namespace stretto {

// One call of Trainer::fit(): the loop around the steps of a run.
class Fit {
 public:
  Fit(const Recipe& recipe, const Mesh& mesh, at::Device device, Module& module, const data::Dataset& train,
      const data::Dataset* validation, const ValidationSets& other_sets, Callbacks& callbacks,
      Trackers& trackers, std::vector<ModelRule> rules);
  FitResult run();
  void catch_up() { run_.engine().weights().catch_up(); }

 private:
  bool main_rank() const { return mesh_.world().rank() == 0; }
  bool over() const { return run_.steps_done() >= run_.total_steps() || !result_.ended_by.empty(); }
  State describe_state(int random_writers);
  void resume(const State& state);
  void begin();
  bool was_finished();
  bool is_complete();
  void claim_folder();
  void evaluate_at_start();
  Requests requests() const;
  void roll_back(const std::string& reason);
  void after(const StepReport& report);
  void evaluate_model(const StepReport& report);
  void require_finite();
  void save_models(bool due);
  void save_last_weights();
  void finish_files();
  void resume_models(const State& state);
  std::string may_be_nonfinite() const;
  void write_record(const StepReport& report) { step_log_.write(report, run_.take_logged()); }
  void end_if_requested();

  const Recipe& recipe_;
  const Mesh& mesh_;
  Module& module_;
  Callbacks& callbacks_;
  std::optional<RunFolder> folder_;  // at rank 0
  TrainingRun run_;
  StepLog step_log_;
  KeptModels models_;
  WeightedMean train_loss_;  // of the steps since it was last taken
  Evaluator evaluator_;
  std::optional<Metrics> at_start_;  // of the evaluation before the first step, until it is recorded
  Checkpoints checkpoints_;
  FitResult result_;
  bool claimed_folder_ = false;
};

}  // namespace stretto
