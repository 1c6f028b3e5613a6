#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "stretto/comm/mesh.h"
#include "stretto/nn/packed.h"

namespace stretto {

class ManualOptimization;
namespace trainer {
struct LoggedWindows;
}

// What a record has of a logged value: the weighted mean, or the sum, over ranks and steps.
enum class LogReduction : uint8_t { mean, sum };

// How StepContext::log records a value.
struct LogOptions {
  // The weight of the value in means, in samples; unset: the number of samples in this rank's batch.
  std::optional<double> weight = {};
  LogReduction reduction = LogReduction::mean;
  bool prog_bar = true;  // shows the value on the progress line
  bool on_step = true;   // records the reduction since the last record, under the value's name
  // Records the reduction over the epoch at its end, under the same name or, with on_step, as "<name>_epoch".
  bool on_epoch = false;
};

// Information and collectives for a training or validation step.
class StepContext {
 public:
  // `all_ranks_step`: every rank has samples, so all of them run this step.
  StepContext(const Mesh& mesh, trainer::LoggedWindows& logged, bool all_ranks_step)
      : mesh_(mesh), logged_(logged), all_ranks_step_(all_ranks_step) {}

  nn::Context forward;  // pass it to the model; forward.training is false in evaluation
  int64_t step = 0;     // optimizer steps done
  int64_t epoch = 0;
  int64_t batch_count = 0;  // samples in this rank's batch
  // In an evaluation of samples that Trainer::add_validation() named: this name; else empty.
  std::string validation_set = {};

  // The ranks among which the global batch is divided (Axes::data). Collectives throw ConfigError if a rank
  // has no samples (a batch smaller than the number of ranks) and does not run the step.
  AxisRanks data_parallel() const;

  // The ranks among which layers are divided (Axis::tp), which have the same samples.
  AxisRanks tensor_parallel() const { return mesh_.tensor_parallel(); }

  // Logs a value of this rank's batch under `name`. Trackers receive its mean over ranks and over the steps
  // since the last record, weighted by the number of samples in the batch, or its sum; and its mean or sum
  // over the epoch if `options` request it. In an evaluation they receive the mean or sum over the whole
  // dataset; only weight and reduction of `options` are used. A batch without samples adds nothing. Throws
  // ConfigError for names that the Trainer logs itself, for a weight of a sum, for a name that is logged with
  // another reduction and, in training, for options with which the value would not be recorded.
  void log(const std::string& name, double value, const LogOptions& options) const;
  void log(const std::string& name, double value, double weight) const {
    log(name, value, LogOptions{.weight = weight});
  }
  void log(const std::string& name, double value) const { log(name, value, LogOptions{}); }

  // The optimizers of a module with automatic_optimization() == false, for its training_step. Throws
  // ConfigError elsewhere.
  ManualOptimization& manual() const;
  void set_manual(ManualOptimization* manual) { manual_ = manual; }

 private:
  const Mesh& mesh_;
  trainer::LoggedWindows& logged_;
  bool all_ranks_step_;
  ManualOptimization* manual_ = nullptr;
};

}  // namespace stretto
