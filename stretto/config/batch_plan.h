#pragma once

#include <cstdint>

#include "stretto/config/recipe.h"

namespace stretto {

// How one optimizer step's samples are cut: global_batch_size = batch_size x ranks x grad_accumulation_steps.
// Where the global batch does not divide evenly, batch_size is the largest share of a rank and some ranks get
// fewer.
struct BatchPlan {
  int64_t global_batch_size = 0;  // 0: as many samples as training.max_tokens lets into each micro-batch
  int64_t batch_size = 0;         // samples a rank and micro-batch; 0 likewise
  int64_t grad_accumulation_steps = 1;
  int64_t ranks = 1;

  bool operator==(const BatchPlan&) const = default;
};

// Any two of the three sizes give the third; where fewer are given, batch_size is 32 and
// grad_accumulation_steps 1. Throws ConfigError with the equation, its numbers and, from `origins`, the lines
// to change. REQUIRES: ranks >= 1.
BatchPlan resolve_batch(const TrainingConfig& training, int64_t ranks, const config::Origins& origins = {});

}  // namespace stretto
