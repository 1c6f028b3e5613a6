#include "stretto/config/batch_plan.h"

#include <algorithm>
#include <bit>

#include "stretto/base/error.h"
#include "stretto/strategy/sharding.h"

namespace stretto {
namespace {

constexpr int64_t default_batch_size = 32;

int64_t divide_up(int64_t total, int64_t parts) { return (total + parts - 1) / parts; }

std::string equation(const BatchPlan& plan) {
  return fmt::format(
      "global_batch_size ({}) = batch_size ({}) x world_size ({}) x grad_accumulation_steps ({})",
      plan.global_batch_size, plan.batch_size, plan.world_size, plan.grad_accumulation_steps);
}

[[noreturn]] void refuse_contradiction(const BatchPlan& plan, int64_t share,
                                       const settings::Origins& origins) {
  const int64_t product = plan.batch_size * plan.world_size * plan.grad_accumulation_steps;
  throw ConfigError(
      "{}: {} does not hold, the right-hand side is {}; change {} to {}, or {} to {}, or omit one of them",
      origins.label("training.global_batch_size"), equation(plan), product,
      origins.mention("training.global_batch_size"), product, origins.mention("training.batch_size"), share);
}

[[noreturn]] void refuse_empty_steps(const BatchPlan& plan, const settings::Origins& origins) {
  throw ConfigError("{}: {}: {} samples leave accumulation steps without samples; set {} to at most {}",
                    origins.label("training.global_batch_size"), equation(plan), plan.global_batch_size,
                    origins.mention("training.grad_accumulation_steps"), plan.global_batch_size);
}

// Divides a given global size. If only batch_size is given, uses the number of accumulation steps that fits it best.
BatchPlan divide_global(const TrainingConfig& training, int64_t world_size,
                        const settings::Origins& origins) {
  const int64_t global = *training.global_batch_size;
  BatchPlan plan{.global_batch_size = global, .world_size = world_size};
  const auto share = [&] { return divide_up(global, world_size * plan.grad_accumulation_steps); };
  if (training.grad_accumulation_steps) {
    plan.grad_accumulation_steps = *training.grad_accumulation_steps;
  } else if (training.batch_size) {
    plan.grad_accumulation_steps = divide_up(global, *training.batch_size * world_size);
    const bool one_step_less_is_nearer = share() != *training.batch_size && plan.grad_accumulation_steps > 1;
    if (one_step_less_is_nearer) --plan.grad_accumulation_steps;
  }
  plan.batch_size = training.batch_size.value_or(share());
  if (plan.batch_size != share()) refuse_contradiction(plan, share(), origins);
  if (global < plan.grad_accumulation_steps) refuse_empty_steps(plan, origins);
  return plan;
}

void refuse_two_units(const TrainingConfig& training, const settings::Origins& origins) {
  const char* by_samples = training.global_batch_size ? "training.global_batch_size" : "training.batch_size";
  throw ConfigError("{}: a micro-batch is sized either by tokens or by samples; remove this or {}",
                    origins.label("training.max_tokens"), origins.mention(by_samples));
}

// The micro-batches of a step are the leaves of a binary tree, of which each rank has a subtree.
void require_deterministic(const TrainingConfig& training, int64_t world_size,
                           const settings::Origins& origins) {
  const std::string label = origins.label("training.deterministic");
  if (!std::has_single_bit(static_cast<uint64_t>(world_size))) {
    throw ConfigError(
        "{}: {} ranks cannot divide the micro-batches of a step into halves; start 1, 2, 4, 8, ... ranks",
        label, world_size);
  }
  if (training.max_tokens) {
    throw ConfigError(
        "{}: micro-batches sized by tokens depend on the number of ranks; replace {} by global_batch_size and batch_size",
        label, origins.mention("training.max_tokens"));
  }
  if (!training.global_batch_size || !training.batch_size) {
    throw ConfigError(
        "{}: the micro-batches of a step must be the same for any number of ranks; set training.global_batch_size and training.batch_size",
        label);
  }
  if (*training.global_batch_size % (*training.batch_size * world_size) != 0) {
    throw ConfigError(
        "{}: {} must be a multiple of {} x {} ranks = {}, so that each rank has as many micro-batches", label,
        origins.mention("training.global_batch_size"), origins.mention("training.batch_size"), world_size,
        *training.batch_size * world_size);
  }
  const Sharding& sharding = find_sharding(training.strategy);
  if (!sums_whole_gradients(sharding)) {
    throw ConfigError("{}: strategy {} sums gradients per shard, in an order of its own; choose {}", label,
                      sharding.name, strategies_with(sums_whole_gradients, "or"));
  }
}

}  // namespace

BatchPlan resolve_batch(const TrainingConfig& training, int64_t world_size,
                        const settings::Origins& origins) {
  if (training.deterministic) require_deterministic(training, world_size, origins);
  const int64_t accumulation = training.grad_accumulation_steps.value_or(1);
  if (training.max_tokens) {
    if (training.global_batch_size || training.batch_size) refuse_two_units(training, origins);
    return {.grad_accumulation_steps = accumulation, .world_size = world_size};
  }
  if (training.global_batch_size) return divide_global(training, world_size, origins);
  const int64_t batch_size = training.batch_size.value_or(default_batch_size);
  return {.global_batch_size = batch_size * world_size * accumulation,
          .batch_size = batch_size,
          .grad_accumulation_steps = accumulation,
          .world_size = world_size};
}

void require_whole_copies(const TrainingConfig& training, int64_t world_size,
                          const settings::Origins& origins) {
  if (!training.dp_shard || world_size % *training.dp_shard == 0) return;
  throw ConfigError("{}: {} ranks cannot be divided into copies of {} ranks each; change either number",
                    origins.label("training.dp_shard"), world_size, *training.dp_shard);
}

std::string describe_batch(const BatchPlan& plan, const TrainingConfig& training) {
  const std::string ranks = fmt::format("{} rank{}", plan.world_size, plan.world_size == 1 ? "" : "s");
  const std::string accumulation =
      plan.grad_accumulation_steps == 1
          ? ""
          : fmt::format(" x {} accumulation steps", plan.grad_accumulation_steps);
  if (plan.global_batch_size == 0) {
    return fmt::format("at most {} tokens per rank and micro-batch x {}{}", training.max_tokens.value_or(0),
                       ranks, accumulation);
  }
  const bool divides =
      plan.batch_size * plan.world_size * plan.grad_accumulation_steps == plan.global_batch_size;
  if (!divides) {
    return fmt::format("{} samples per step: at most {} per rank{} on {}{}", plan.global_batch_size,
                       plan.batch_size, accumulation.empty() ? "" : " and micro-batch", ranks, accumulation);
  }
  return fmt::format("{} samples per step = {} per rank x {}{}", plan.global_batch_size, plan.batch_size,
                     ranks, accumulation);
}

}  // namespace stretto
