#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "stretto/strategy/compute_options.h"

namespace stretto {

// The batch sizes that a user gives.
struct BatchRequest {
  std::optional<int64_t> batch_size = std::nullopt;         // samples per rank and micro-batch
  std::optional<int64_t> global_batch_size = std::nullopt;  // samples per optimizer step, over all ranks
  std::optional<int64_t> grad_accumulation_steps = std::nullopt;
  std::optional<int64_t> max_tokens = std::nullopt;  // per rank and micro-batch, instead of both batch sizes
  // A step has global_batch_size / batch_size micro-batches, for any number of ranks.
  bool deterministic = false;
};

// How the samples of one optimizer step are divided: global_batch_size = batch_size x data_ranks x
// grad_accumulation_steps. If the global batch does not divide evenly, batch_size is the largest share of any
// rank.
struct BatchPlan {
  int64_t global_batch_size = 0;  // 0: as many samples as max_tokens allows
  int64_t batch_size = 0;         // samples per rank and micro-batch; 0: as many as max_tokens allows
  int64_t grad_accumulation_steps = 1;
  int64_t data_ranks = 1;  // ranks that train on different samples (Axes::data)
  int64_t max_tokens = 0;  // per rank and micro-batch; 0: no limit

  // The micro-batches of a step over all ranks if each has batch_size samples. REQUIRES: max_tokens is 0.
  int64_t micro_batches() const { return global_batch_size / batch_size; }

  bool operator==(const BatchPlan&) const = default;
};

// Any two of the three sizes determine the third; with fewer, batch_size defaults to 32 and
// grad_accumulation_steps to 1. Called by resolve() (topology.h). Throws ConfigError with the equation, its
// numbers and what to change, also if `deterministic` does not allow the sizes.
// REQUIRES: data_ranks >= 1.
BatchPlan resolve_batch(const BatchRequest& request, int64_t data_ranks, const OptionLabels& labels);

// The plan as text: "32 samples per step = 8 per rank x 2 ranks x 2 accumulation steps" or "7 samples per
// step: at most 4 per rank on 2 ranks". Ranks that divide layers train on the same samples: of two that do
// so, "8 samples per step = 8 per group x 1 group of 2 ranks".
std::string describe_batch(const BatchPlan& plan, int64_t ranks_per_layer = 1);

}  // namespace stretto
