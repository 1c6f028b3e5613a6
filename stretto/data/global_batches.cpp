#include "stretto/data/global_batches.h"

namespace stretto::data {
namespace {

// Converts a budget of tokens to a number of blocks.
SamplerOptions by_count(SamplerOptions order, int64_t samples) {
  order.max_tokens = 0;
  order.global_batch_size = samples;
  return order;
}

SamplerOptions order_of(const Dataset& dataset, const BatchOptions& options) {
  SamplerOptions order;
  order.seed = options.seed;
  order.shuffle = options.shuffle && !dataset.is_ordered();
  order.group_by_length = dataset.pads();
  order.global_batch_size = options.global_batch_size;
  if (options.max_tokens <= 0) return order;
  order.global_batch_size = 0;
  int64_t budget = 0;
  const bool overflows =
      __builtin_mul_overflow(options.max_tokens, options.grad_accumulation_steps, &budget) ||
      __builtin_mul_overflow(budget, int64_t{options.world_size}, &budget);
  order.max_tokens = overflows ? INT64_MAX : budget;
  if (dataset.block_size() > 0 && order.max_tokens >= dataset.block_size())
    return by_count(order, order.max_tokens / dataset.block_size());
  return order;
}

}  // namespace

GlobalBatches::GlobalBatches(const Dataset& dataset, const BatchOptions& options)
    : dataset_(dataset),
      options_(options),
      order_(order_of(dataset, options)),
      sampler_(lengths_of(dataset), order_) {}

// This rank's share of the micro-batches that a single rank would have.
void GlobalBatches::take_same_parts(GlobalBatch& batch) const {
  const int64_t parts = options_.same_parts, ranks = options_.world_size;
  MicroBatches all =
      split_batch(batch.samples, lengths_of(dataset_), /*world_size=*/1, /*rank=*/0, parts, dataset_.pads());
  batch.parts = parts;
  batch.own_parts = part_range(parts, ranks, options_.rank);
  const int64_t most = (parts + ranks - 1) / ranks;
  batch.micro_batches.resize(static_cast<size_t>(most - batch.own_parts.size()));
  for (int64_t part = batch.own_parts.begin; part < batch.own_parts.end; ++part)
    batch.micro_batches.push_back(std::move(all[static_cast<size_t>(part)]));
}

GlobalBatch GlobalBatches::split(std::vector<int64_t> samples) const {
  GlobalBatch batch;
  batch.samples = std::move(samples);
  if (options_.same_parts > 0) {
    take_same_parts(batch);
    return batch;
  }
  const int64_t micro_batches =
      options_.batch_size > 0
          ? count_micro_batches(std::ssize(batch.samples), options_.world_size, options_.batch_size)
          : options_.grad_accumulation_steps;
  batch.micro_batches = split_batch(batch.samples, lengths_of(dataset_), options_.world_size, options_.rank,
                                    micro_batches, dataset_.pads());
  return batch;
}

}  // namespace stretto::data
