#pragma once

#include <cstdint>

#include "stretto/config/recipe.h"

namespace stretto {

// How the samples of one optimizer step are divided: global_batch_size = batch_size x world_size x
// grad_accumulation_steps. If the global batch does not divide evenly, batch_size is the largest share of any rank.
struct BatchPlan {
  int64_t global_batch_size = 0;  // 0: as many samples as training.max_tokens allows
  int64_t batch_size = 0;         // samples per rank and micro-batch; 0: as above
  int64_t grad_accumulation_steps = 1;
  int64_t world_size = 1;

  bool operator==(const BatchPlan&) const = default;
};

// Any two of the three sizes determine the third; with fewer, batch_size defaults to 32 and grad_accumulation_steps to
// 1. Throws ConfigError with the equation, its numbers and, from `origins`, the lines to change; and if
// training.deterministic does not support the settings or the number of ranks. REQUIRES: world_size >= 1.
BatchPlan resolve_batch(const TrainingConfig& training, int64_t world_size,
                        const settings::Origins& origins = {});

// Throws ConfigError if training.dp_shard does not divide the ranks.
void require_whole_copies(const TrainingConfig& training, int64_t world_size,
                          const settings::Origins& origins);

// For example "32 samples per step = 8 per rank x 2 ranks x 2 accumulation steps" or "7 samples per step: at most 4 per
// rank on 2 ranks".
std::string describe_batch(const BatchPlan& plan, const TrainingConfig& training);

}  // namespace stretto
