#pragma once

#include <string>

#include "stretto/comm/group.h"
#include "stretto/nn/packed.h"
#include "stretto/trainer/logged_values.h"

namespace stretto {

// What a step knows besides its batch, and what it may ask of the other ranks.
class StepContext {
 public:
  // `all_ranks_step`: no rank was left without a sample, so that all of them are in this step.
  StepContext(Group& group, LoggedValues& logged, bool all_ranks_step)
      : group_(group), logged_(logged), all_ranks_step_(all_ranks_step) {}

  nn::Context forward;  // pass it to the model; forward.training tells training from evaluation
  int64_t step = 0;     // optimizer steps done
  int64_t epoch = 0;
  int64_t batch_count = 0;  // samples in this rank's batch

  // The ranks that share the global batch, each with samples of its own.
  int data_parallel_rank() const { return group_.rank(); }
  int data_parallel_size() const { return group_.size(); }

  // The group of these ranks, for collectives inside of a step. Every rank must then make the same calls; so it throws
  // ConfigError where one was left without a sample (a batch smaller than the number of ranks) and would not.
  Group& data_parallel_group() const;

  // The sum of `tensor` over those ranks; a new tensor, through which no gradient flows.
  Tensor all_reduce(const Tensor& tensor) const;

  // Tells a number of this rank's batch under `name`. What is shown, written to metrics.jsonl and given to trackers is the
  // mean over ranks and steps since the last line, by `weight`, or by the batch's number of samples. In an evaluation it is
  // the mean over the whole dataset. Throws ConfigError for the names that the Trainer itself writes.
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
