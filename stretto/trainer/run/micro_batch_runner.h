#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "stretto/comm/mesh.h"
#include "stretto/data/global_batches.h"
#include "stretto/parallel/backward.h"
#include "stretto/trainer/api/module.h"
#include "stretto/trainer/run/step_totals.h"

namespace stretto {
namespace parallel {
class Engine;
}
class EvaluatedMetrics;
}  // namespace stretto

namespace stretto::trainer {

struct LoggedWindows;

// The function of the Module that is called.
enum class EvaluationStep { validation, test, predict };

struct MicroBatchOptions {
  at::Device device;
  std::optional<at::ScalarType> autocast = {};  // see ComputePrecision
  // Every rank must run forward equally often (EngineFacts::passes_are_collective).
  bool collective_forward = false;
};

// The information for the StepContext of a step, besides its batch.
struct PassInfo {
  nn::Context forward = {};
  int64_t step = 0;  // optimizer steps done
  int64_t epoch = 0;
  std::string validation_set = {};
  double loss_factor = 1;  // multiplies the losses of training before backward
};

// Runs this rank's micro-batches of a global batch through a module, one after the other: makes the batch,
// moves it to the device, and calls the module's step under autocast. A rank without a sample in a
// micro-batch skips it. If forward is collective or the module steps its optimizers itself, the rank instead
// runs the step on the global batch's first sample, whose result, logged values and metric updates do not
// count.
class MicroBatchRunner {
 public:
  // The references must outlive the runner.
  MicroBatchRunner(Module& module, const data::Dataset& dataset, const Mesh& mesh, MicroBatchOptions options);

  // Forward and backward of each micro-batch. `reduce`: with `last`, the gradients are summed over the ranks
  // from the last backward to Engine::finish(); with `never`, they are not summed. Values that steps log are
  // added to `logged`. Returns this rank's totals, without requests. Throws Error or ShapeError for an
  // invalid loss. Collective unless `reduce` is never.
  StepTotals train(const data::GlobalBatch& batch, const PassInfo& info, parallel::Engine& engine,
                   LoggedWindows& logged, parallel::Reduce reduce = parallel::Reduce::last);

  // Runs the training_step of a module that calls backward and steps its optimizers itself; if the batch has
  // parts, of all micro-batches in turns. Returns this rank's totals, without requests. Throws Error or
  // ShapeError like ManualOptimization. Collective.
  StepTotals by_hand(const data::GlobalBatch& batch, const PassInfo& info, ManualOptimization& manual,
                     LoggedWindows& logged);

  // Called after each micro-batch: the predictions of `samples` as the step returned them, rows
  // [samples, K] float64; empty if it returned none.
  using UsePredictions = std::function<void(std::span<const int64_t> samples, Predictions predictions)>;

  // Forward of each micro-batch. `objects`: the module's. Throws ShapeError for other predictions. REQUIRES:
  // no gradients are enabled.
  void evaluate(const data::GlobalBatch& batch, const PassInfo& info, EvaluationStep step,
                EvaluatedMetrics& objects, LoggedWindows& logged, const UsePredictions& use_predictions);

  // Seconds that were spent on making batches so far.
  double data_seconds() const { return data_seconds_; }

 private:
  struct Pass;
  template <class Output>
  void each(const data::GlobalBatch& batch, const PassInfo& info, bool idle_runs, LoggedWindows& logged,
            const std::function<Output(Pass&)>& step,
            const std::function<void(const Pass&, const Output&)>& use);
  template <class Output>
  void run_pass(const data::GlobalBatch& batch, int64_t number, const PassInfo& info, bool idle_runs,
                LoggedWindows& logged, const std::function<Output(Pass&)>& step,
                const std::function<void(const Pass&, const Output&)>& use);

  Module& module_;
  const data::Dataset& dataset_;
  const Mesh& mesh_;
  const MicroBatchOptions options_;
  double data_seconds_ = 0;
};

}  // namespace stretto::trainer
