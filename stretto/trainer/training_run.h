#pragma once

#include <memory>
#include <string>

#include "stretto/comm/group.h"
#include "stretto/config/batch_plan.h"
#include "stretto/config/recipe.h"
#include "stretto/data/dataset.h"
#include "stretto/data/sampler.h"
#include "stretto/optim/optimizer.h"
#include "stretto/optim/schedule.h"
#include "stretto/parallel/arena.h"
#include "stretto/parallel/data_parallel.h"
#include "stretto/trainer/module.h"

namespace stretto {

// One optimizer step as all ranks see it.
struct StepReport {
  int64_t step = 0;  // 1 after the first
  int64_t epoch = 0;
  double loss = 0;  // mean over the global batch
  double grad_norm = 0;
  double lr = 0;
  int64_t samples = 0;  // of the global batch
  int64_t tokens = 0;
};

// The state of a run and how it takes one step; the Trainer decides when.
class TrainingRun {
 public:
  // Binds the module's parameters to the arena and gives every rank rank 0's weights. Collective. `dataset` and `group`
  // must outlive the run.
  TrainingRun(const Recipe& recipe, Module& module, const data::Dataset& dataset, Group& group, at::Device device);

  int64_t steps_an_epoch() const { return sampler_.batches(0); }
  int64_t total_steps() const { return schedule_.total_steps; }
  int64_t steps_done() const { return optimizer_->steps_done(); }

  // Takes the next step: micro-batches forward and backward, reduction, clipping, update. Throws before the update when
  // loss or gradients are not finite, naming step and parameter.
  StepReport step();

  // Parameters and buffers at master precision, by name.
  NamedTensors weights() const;

  // Types and memory, a line each, for the start of a run.
  std::string describe() const;

 private:
  Loss accumulate(const std::vector<int64_t>& batch, int64_t epoch);
  double clip_scale(double count, double norm) const;
  [[noreturn]] void refuse_nonfinite(double loss) const;

  const TrainingConfig training_;
  BatchPlan plan_;
  Module& module_;
  const data::Dataset& dataset_;
  Group& group_;
  at::Device device_;
  ModuleTensors tensors_;
  Arena arena_;
  DataParallel engine_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  data::Sampler sampler_;
  optim::ScheduleOptions schedule_;
};

}  // namespace stretto
