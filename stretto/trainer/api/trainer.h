#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "stretto/comm/mesh.h"
#include "stretto/config/model_rule.h"
#include "stretto/config/recipe.h"
#include "stretto/data/dataset.h"
#include "stretto/track/tracker.h"
#include "stretto/trainer/api/callback.h"
#include "stretto/trainer/api/data_module.h"
#include "stretto/trainer/api/module.h"

namespace stretto {

namespace trainer {
enum class EvaluationStep;
struct Evaluation;
}  // namespace trainer

// The result of Trainer::fit.
struct FitResult {
  int64_t steps = 0;
  int64_t samples = 0;           // the number of samples that this part of the run trained on
  int64_t tokens = 0;            // of these samples, without padding
  int64_t skipped_steps = 0;     // of the run, because gradients overflowed in fp16
  int64_t total_steps = 0;       // of the run, including those that a callback omitted
  int64_t training_samples = 0;  // of the training set
  double seconds = 0;
  std::optional<Metrics> best;  // metrics of the epoch whose model was kept; nullopt without evaluation
  int64_t best_epoch = 0;       // 1 is the first
  int64_t best_step = 0;
  int64_t resumed_after = 0;  // the step of the checkpoint; 0: the run started from the beginning
  bool stopped = false;  // by a signal or training.steps_this_run, before the last step; the state was saved
  bool was_finished = false;  // the run had completed all its steps before: nothing was trained or written
  std::string ended_by;       // the reason if a callback ended the run before its last step; else empty
};

// Which weights Trainer::test() and predict() use.
struct TestOptions {
  std::filesystem::path model =
      {};  // a folder that Module::save() wrote; empty: <output>/model, the best model of the run
  // false: the weights with which the module was constructed. REQUIRES: no fit() has trained it
  bool load = true;
};

// Constructs the mesh of a job that trains by `recipe`, with its batches: the ranks are arranged as the
// strategy requires (strategy/topology.h), or as `shape`. Every rank of `world` must call it, with the same
// arguments. Collective. Throws ConfigError if strategy, dp_shard, batch sizes or `shape` do not fit the
// ranks.
Mesh make_mesh(const Recipe& recipe, Group& world);
Mesh make_mesh(const Recipe& recipe, Group& world, const MeshShape& shape);

// Trains a module by a recipe: steps, evaluation, keeping the best model, checkpoints and resuming, progress,
// metrics in the output folder. Every rank calls fit with the same recipe and data.
class Trainer {
 public:
  // The ranks of Axes::data share the global batch; those that differ only on other axes get the same
  // samples, and the module divides the work among them. A strategy that shards does so over Axes::shard.
  // REQUIRES: `mesh` is constructed by make_mesh() with `recipe`; both outlive the trainer.
  Trainer(const Recipe& recipe, const Mesh& mesh, at::Device device)
      : recipe_(recipe), mesh_(mesh), device_(device) {}
  Trainer(const Recipe&, Mesh&&, at::Device) = delete;

  // Call these before fit(). Callbacks are called in the order in which they are added; every rank must add
  // the same ones. Trackers are called after those of the recipe, on rank 0 only.
  void add(std::shared_ptr<Callback> callback) { callbacks_.push_back(std::move(callback)); }
  void add(std::shared_ptr<Tracker> tracker) { trackers_.push_back(std::move(tracker)); }

  // Evaluates these samples after those that are passed to fit(). Their metrics are named "<name>/<metric>",
  // as in "hard/accuracy", in records and in settings that select a metric (checkpoint.monitor);
  // validation_step finds the name in its context. Call it before fit(), on every rank. Throws ConfigError
  // for a name that is taken, empty or contains "/".
  void add_validation(const std::string& name, const data::Dataset& samples);

  // Keeps another model besides <output>/model, in <output>/models/<name>: the best by the metric in its
  // name, as in "best_accuracy", "best_valid_loss" or "best_train_loss" ("best_" may be omitted), among those
  // within the limits:
  //   trainer.register_model_saving("best_accuracy", {.saving_above = 0.2});
  // Its state.json contains the metric. Equivalent to an element of checkpoint.save_models. Call it before
  // fit(), on every rank.
  void register_model_saving(const std::string& name, const SavingLimits& limits = {}) {
    model_rules_.push_back(make_model_rule(name, limits));
  }

  // Trains the module. `validation` may be null. Afterwards <output>/model is the best model by
  // checkpoint.monitor, or the last one without evaluation. Throws ConfigError, DataError (also for a dataset
  // without samples), IoError, DistributedError or Error (the loss or the weights are not finite).
  FitResult fit(Module& module, const data::Dataset& train, const data::Dataset* validation);

  // Like fit() with the datasets of `data`. Throws ConfigError if it has no train().
  FitResult fit(Module& module, DataModule& data);

  // Loads the weights and computes the metrics of `samples` with Module::test_step, each sample once; the
  // same on all ranks. The model computes in training.precision. Rank 0 writes them to
  // <output>/test_results.json. Collective. Throws ConfigError if there is no model, and DataError if there
  // are no samples.
  Metrics test(Module& module, const data::Dataset& samples, const TestOptions& options = {});
  Metrics test(Module& module, DataModule& data, const TestOptions& options = {});

  // Loads the weights and returns what Module::predict_step returns, rows [samples, K] float64 and bytes in
  // dataset order, on rank 0, and nothing on other ranks. Collective. Throws ConfigError if there is no
  // model, or predict_step returns nothing, and DataError if there are no samples.
  Predictions predict(Module& module, const data::Dataset& samples, const TestOptions& options = {});
  Predictions predict(Module& module, DataModule& data, const TestOptions& options = {});

 private:
  void prepare(DataModule& data, Stage stage) const;
  trainer::Evaluation evaluate_loaded(Module& module, const data::Dataset& samples,
                                      const TestOptions& options, trainer::EvaluationStep step) const;

  const Recipe& recipe_;
  const Mesh& mesh_;
  at::Device device_;
  std::vector<std::shared_ptr<Callback>> callbacks_;
  std::vector<std::shared_ptr<Tracker>> trackers_;
  std::vector<ModelRule> model_rules_;
  std::vector<std::pair<std::string, const data::Dataset*>> validation_sets_;  // besides that of fit()
};

}  // namespace stretto
