#pragma once

#include <cmath>
#include <exception>
#include <functional>
#include <string>

#include "stretto/config/recipe.h"
#include "stretto/tensor/state.h"
#include "stretto/track/tracker.h"
#include "stretto/trainer/api/module.h"
#include "stretto/trainer/api/step_report.h"

namespace stretto {

namespace data {
class Dataset;
}

// The state of a run that callbacks receive.
struct FitContext {
  const Recipe& recipe;
  Module& module;
  const Mesh& mesh;
  Tracker& trackers;             // for texts, histograms and images; without effect on ranks other than 0
  const data::Dataset& samples;  // the samples of the training set
  int64_t steps_done = 0;
  int64_t total_steps = 0;
  int64_t epoch = 0;        // of the current step; 0 is the first
  Metrics evaluation = {};  // metrics of the last evaluation; empty before the first
  double train_loss = NAN;  // at evaluation_end: the mean over the steps since the previous evaluation
  std::function<void()> catch_up = [] {};  // brings sparse tables up to date
  // The parameters at master precision and the buffers, by name. Collective, because they may have to be
  // gathered.
  std::function<NamedTensors()> weights = [] { return NamedTensors(); };
  // The gradients of the mean loss over the global batch, before clipping, by parameter; for gradients_ready.
  // Collective, because they may have to be gathered: every rank then has all of them in memory.
  std::function<NamedTensors()> gradients = [] { return NamedTensors(); };

  // Requests the end of the run on all ranks; any rank may call it. In fit_start, evaluation_end or epoch_end
  // the run ends there. In step_start or step_end the request is sent with the next reduction, and the run
  // ends after that step.
  void stop(const std::string& why) { stop_reason = why.empty() ? "requested by a callback" : why; }
  std::string stop_reason = {};
};

// Code that runs at events of training. Every rank has its own instance. Each event occurs on every rank, in
// the order below, and calls the callbacks in the order in which they were added:
//
//   fit_start                    the state is restored; no step was taken yet
//     epoch_start                not if the run was resumed inside of the epoch
//       step_start
//       gradients_ready          reduced, before the update; only for callbacks that read gradients, and not
//                                with manual optimization
//       step_end                 the optimizer has stepped, or the step was skipped (see report.taken)
//       evaluation_end           after steps that evaluate.every selects; metrics are the same on all ranks
//     epoch_end
//       checkpoint_saved         its files may still be written in the background (checkpoint.async); it
//                                contains the state of callbacks after all of the above
//   fit_end                      the model is saved
//   exception                    instead of the next event, on the rank that threw
//
// At all events but exception the module's parameters are up to date. A callback that rarely reads them in
// step_start and step_end can allow rows of sparse tables (nn::Embedding) to lag behind there, which makes
// steps faster: see reads_parameters(). Under zero1, zero2 and fsdp the ranks of a host share one copy of the
// parameters: a callback that writes them does so on one rank only, unless the recipe sets
// training.shared_parameters: off.
//
// After a step that causes a rollback to a checkpoint, resume() is called instead of step_end(). An exception
// of a callback ends the run; the message names the callback and the event.
class Callback {
 public:
  virtual ~Callback() = default;

  // The callback's name in messages, and the key of its state; unique in a run.
  virtual std::string name() const = 0;

  // Whether step_start and step_end read or write the module's parameters. If it is false for all callbacks
  // of a run, they must call FitContext::catch_up() before accessing parameters there.
  virtual bool reads_parameters() const { return true; }

  // Whether gradients_ready is called.
  virtual bool reads_gradients() const { return false; }

  virtual void fit_start(FitContext&) {}
  virtual void epoch_start(FitContext&) {}
  virtual void step_start(FitContext&) {}
  // `coming`: the step and epochs that step_end will report.
  virtual void gradients_ready(FitContext&, const StepReport& /*coming*/) {}
  virtual void step_end(FitContext&, const StepReport&) {}
  virtual void evaluation_end(FitContext&, const Metrics&) {}
  virtual void epoch_end(FitContext&) {}
  virtual void checkpoint_saved(FitContext&) {}
  virtual void fit_end(FitContext&) {}
  virtual void exception(FitContext&, const std::exception&) {}

  // The state saved in checkpoints, under names of the callback's choice, as in tensor/state.h. Its tensors
  // are equal on all ranks; rank 0's scalars are saved.
  virtual void add_state(State&) const {}
  virtual void resume(const State&) {}
};

}  // namespace stretto
