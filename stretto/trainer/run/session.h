#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stretto/base/weighted_mean.h"
#include "stretto/comm/mesh.h"
#include "stretto/config/recipe.h"
#include "stretto/data/epoch_cursor.h"
#include "stretto/optim_config/schedule.h"
#include "stretto/parallel/engine.h"
#include "stretto/parallel/loss_scale.h"
#include "stretto/parallel/matmul_libraries.h"
#include "stretto/parallel/random_state.h"
#include "stretto/tensor/state_source.h"
#include "stretto/trainer/api/callbacks.h"
#include "stretto/trainer/api/manual_optimization.h"
#include "stretto/trainer/api/module.h"
#include "stretto/trainer/api/optimizer_plan.h"
#include "stretto/trainer/folder/kept_models.h"
#include "stretto/trainer/folder/run_folder.h"
#include "stretto/trainer/records/logged_steps.h"
#include "stretto/trainer/records/step_log.h"
#include "stretto/trainer/run/compute_precision.h"
#include "stretto/trainer/run/evaluator.h"
#include "stretto/trainer/run/optimizer_set.h"
#include "stretto/trainer/run/pending_evaluation.h"
#include "stretto/trainer/run/step_guard.h"

namespace stretto::trainer {

// The parts from which a run is made. All references must outlive its session.
struct SessionParts {
  const Recipe& recipe;
  const Mesh& mesh;  // by make_mesh()
  at::Device device;
  Module& module;
  const data::Dataset& train;
  trainer::Callbacks& callbacks;
  track::Trackers& trackers;
  const data::Dataset* validation = nullptr;
  ValidationSets other_sets = {};
  std::vector<ModelRule> rules = {};  // of the models to keep besides model/
};

// A run: its parts, and their state as one table. TrainingRun takes its steps; Fit decides what happens
// between them.
struct Session {
  // Starts a run. Called by make_session() with the plan of `parts` and the source of the parameters' values,
  // null if the module has them.
  Session(const SessionParts& parts, OptimizerPlan plan, const TensorSource* values);

  int64_t steps_per_epoch() const { return cursor.steps_per_epoch(); }
  int64_t total_steps() const { return schedule->total_steps(); }
  // The number of optimizer steps, including those that were skipped; for a module that steps several
  // optimizers itself, of batches.
  int64_t steps_done() const {
    return manual ? manual->batches_done() : engine.steps_done() + loss_scale.skipped_steps();
  }
  // The schedules of the run: one, or that of each optimizer that the module steps itself.
  std::vector<optim::Schedule*> schedules() const;
  // What multiplies a loss, which is a sum over samples or tokens, before backward: the loss scale is that of
  // a mean over the samples of the global batch.
  double loss_factor() const;
  bool is_main_rank() const { return mesh.world().rank() == 0; }

  // The complete state on which the next step depends: a table that refers to live memory. Collective.
  State state();

  // Continues from `source`, regardless of the steps since; parts without an entry in it are unchanged. World
  // size and batch sizes may differ from those of the run that saved it. Throws ConfigError if model or data
  // are not those of that run, DataError if the source is malformed. Collective.
  void restore(StateSource& source);

  // Saves the models that are `due`, and those that could not be written before. Collective, because the
  // weights may have to be gathered; rank 0 writes. Throws like require_finite().
  void save_models(bool due);
  // Throws Error on all ranks if weights are NaN or infinite, unless checkpoint.allow_nonfinite is set.
  // Buffers are not checked: they may contain infinity, as attention masks do. Collective.
  void require_finite();

  // The header of a run, one line per subject: model, types, memory, communication, batch, steps.
  std::string describe();

  const Recipe& recipe;
  const Mesh& mesh;
  const at::Device device;
  Module& module;
  const data::Dataset& train;
  const ComputePrecision compute;
  trainer::Callbacks& callbacks;
  std::optional<RunFolder> folder;  // at rank 0
  OptimizerSet* const several;      // the engine's optimizer if the module steps several itself; else null
  parallel::Engine engine;
  std::optional<ManualOptimization> manual;  // with `several`
  std::unique_ptr<optim::Schedule> schedule;
  data::EpochCursor cursor;
  std::optional<parallel::MatmulLibraries> products;  // on CPU
  StepGuard guard;
  parallel::LossScale loss_scale;
  parallel::RandomState random;
  LoggedSteps logged;
  StepLog step_log;
  WeightedMean train_loss;  // of the steps since it was last taken
  Evaluator evaluator;
  std::optional<PendingEvaluation> pending;
  KeptModels models;

 private:
  template <class Use>
  void each_part(const Use& use);
  int64_t count_total_steps() const;
  void begin_deterministic() const;
  std::string describe_lr_scale() const;
  std::string describe_mesh() const;
  std::string describe_sums() const;
  std::string describe_order() const;
};

// Binds the module to an engine, which broadcasts the weights of the first rank over Axes::sum, and
// constructs the other parts of the run, at its start or at the state in `source`. The ranks of Axes::data
// share the global batch; others get the same samples. Collective. Throws ConfigError for settings that do
// not fit the module, its optimizers, the ranks or each other, and like Session::restore().
std::unique_ptr<Session> make_session(const SessionParts& parts, StateSource* source = nullptr);

}  // namespace stretto::trainer
