#pragma once

#include <string>

#include "stretto/comm/group.h"
#include "stretto/nn/packed.h"
#include "stretto/trainer/logged_values.h"

namespace stretto {

// Information and collectives for a training or validation step.
class StepContext {
 public:
  // `all_ranks_step`: every rank has samples, so all of them run this step.
  StepContext(Group& group, LoggedValues& logged, bool all_ranks_step)
      : group_(group), logged_(logged), all_ranks_step_(all_ranks_step) {}

  nn::Context forward;  // pass it to the model; forward.training is false in evaluation
  int64_t step = 0;     // optimizer steps done
  int64_t epoch = 0;
  int64_t batch_count = 0;  // samples in this rank's batch
  // In an evaluation of samples that Trainer::add_validation() named: their name. Else empty.
  std::string validation_set = {};

  // This rank in the group of ranks among which the global batch is divided, and the size of that group.
  int data_parallel_rank() const { return group_.rank(); }
  int data_parallel_size() const { return group_.size(); }

  // The group of these ranks, for collectives inside of a step. Every rank must make the same calls: throws ConfigError
  // if a rank has no samples (a batch smaller than the number of ranks) and does not run the step.
  Group& data_parallel_group() const;

  // The sum of `tensor` over these ranks: a new tensor, detached from the graph.
  Tensor all_reduce(const Tensor& tensor) const;

  // Logs a value of this rank's batch under `name`. Trackers receive its mean over ranks and over the steps since the
  // last record, weighted by `weight`, by default the number of samples in the batch; in an evaluation, the mean over
  // the whole dataset. Throws ConfigError for names that the Trainer logs itself.
  void log(const std::string& name, double value, double weight) const;
  void log(const std::string& name, double value) const {
    log(name, value, static_cast<double>(batch_count));
  }

 private:
  Group& group_;
  LoggedValues& logged_;
  bool all_ranks_step_;
};

}  // namespace stretto
