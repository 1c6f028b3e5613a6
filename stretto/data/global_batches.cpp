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
MicroBatches GlobalBatches::same_part(const std::vector<int64_t>& samples) const {
  const int64_t per_rank = options_.grad_accumulation_steps;
  const MicroBatches all = split_batch(samples, lengths_of(dataset_), /*world_size=*/1, /*rank=*/0,
                                       per_rank * options_.world_size, dataset_.pads());
  const auto first = all.begin() + options_.rank * per_rank;
  return {first, first + per_rank};
}

GlobalBatch GlobalBatches::split(std::vector<int64_t> samples) const {
  GlobalBatch batch;
  if (options_.same_parts) {
    batch.micro_batches = same_part(samples);
  } else {
    const int64_t micro_batches =
        options_.batch_size > 0
            ? count_micro_batches(std::ssize(samples), options_.world_size, options_.batch_size)
            : options_.grad_accumulation_steps;
    batch.micro_batches = split_batch(samples, lengths_of(dataset_), options_.world_size, options_.rank,
                                      micro_batches, dataset_.pads());
  }
  batch.samples = std::move(samples);
  return batch;
}

}  // namespace stretto::data
