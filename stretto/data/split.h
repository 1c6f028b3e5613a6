#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stretto::data {

// For each micro-step the dataset indices that one rank works on; an empty list where it has none in that
// step.
using MicroSteps = std::vector<std::vector<int64_t>>;

// Micro-steps that `samples` need when each of `ranks` takes at most batch_size a step: the accumulation
// steps of a whole global batch, fewer for the last of an epoch. REQUIRES: ranks, batch_size >= 1. Throws
// ConfigError otherwise.
int64_t count_micro_steps(int64_t samples, int ranks, int64_t batch_size);

// The part of `rank` in a global batch. The batch is ordered by length, longest first, and cut into
// `micro_steps` whose counts differ by at most one: of samples alike in length, for batches that are padded, or
// of alike sums of lengths. Each is dealt to the ranks so that counts in a step differ by at most one and
// tokens over the steps so far by no more than one longest sample. The parts of all ranks are the batch,
// each sample once, and every rank has the same number of
// steps. A pure function: no communication. lengths: tokens of every sample of the dataset. Throws
// ConfigError unless 0 <= rank < ranks and micro_steps >= 0.
MicroSteps split_batch(std::span<const int64_t> batch, std::span<const int32_t> lengths, int ranks, int rank,
                       int64_t micro_steps, bool alike_in_length = true);

// The part of `rank` in an evaluation of the whole dataset, in steps of at most batch_size samples a rank:
// each sample once over all ranks, otherwise as split_batch.
MicroSteps evaluation_batches(std::span<const int32_t> lengths, int ranks, int rank, int64_t batch_size);

}  // namespace stretto::data
