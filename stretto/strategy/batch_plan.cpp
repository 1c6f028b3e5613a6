#include "stretto/strategy/batch_plan.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"

namespace stretto {
namespace {

constexpr int64_t default_batch_size = 32;

// counted() has no plural of this.
std::string counted_batches(int64_t count) {
  return fmt::format("{} micro-batch{}", count, count == 1 ? "" : "es");
}

int64_t divide_up(int64_t total, int64_t parts) { return (total + parts - 1) / parts; }

std::string equation(const BatchPlan& plan) {
  return fmt::format(
      "global_batch_size ({}) = batch_size ({}) x world_size ({}) x grad_accumulation_steps ({})",
      plan.global_batch_size, plan.batch_size, plan.data_ranks, plan.grad_accumulation_steps);
}

[[noreturn]] void refuse_contradiction(const BatchPlan& plan, int64_t share, const OptionLabels& labels) {
  const int64_t product = plan.batch_size * plan.data_ranks * plan.grad_accumulation_steps;
  throw ConfigError(
      "{}{} does not hold, the right-hand side is {}; change {} to {}, or {} to {}, or omit one of them",
      labels.label("global_batch_size"), equation(plan), product, labels.mention("global_batch_size"),
      product, labels.mention("batch_size"), share);
}

[[noreturn]] void refuse_empty_steps(const BatchPlan& plan, const OptionLabels& labels) {
  throw ConfigError("{}{}: {} samples leave accumulation steps without samples; set {} to at most {}",
                    labels.label("global_batch_size"), equation(plan), plan.global_batch_size,
                    labels.mention("grad_accumulation_steps"), plan.global_batch_size);
}

// Divides a given global size. If only batch_size is given, uses the number of accumulation steps that
// matches it best.
BatchPlan divide_global(const BatchRequest& request, int64_t data_ranks, const OptionLabels& labels) {
  const int64_t global = *request.global_batch_size;
  BatchPlan plan{.global_batch_size = global, .data_ranks = data_ranks};
  const auto share = [&] { return divide_up(global, data_ranks * plan.grad_accumulation_steps); };
  if (request.grad_accumulation_steps) {
    plan.grad_accumulation_steps = *request.grad_accumulation_steps;
  } else if (request.batch_size) {
    plan.grad_accumulation_steps = divide_up(global, *request.batch_size * data_ranks);
    const bool one_step_less_is_nearer = share() != *request.batch_size && plan.grad_accumulation_steps > 1;
    if (one_step_less_is_nearer) --plan.grad_accumulation_steps;
  }
  plan.batch_size = request.batch_size.value_or(share());
  if (plan.batch_size != share()) refuse_contradiction(plan, share(), labels);
  if (global < plan.grad_accumulation_steps) refuse_empty_steps(plan, labels);
  return plan;
}

void refuse_two_units(const BatchRequest& request, const OptionLabels& labels) {
  const char* by_samples = request.global_batch_size ? "global_batch_size" : "batch_size";
  throw ConfigError("{}a micro-batch is sized either by tokens or by samples; remove this or {}",
                    labels.label("max_tokens"), labels.mention(by_samples));
}

BatchPlan divide_deterministic(const BatchRequest& request, int64_t data_ranks, const OptionLabels& labels) {
  const std::string label = labels.label("deterministic");
  if (request.max_tokens) {
    throw ConfigError(
        "{}micro-batches sized by tokens depend on the number of ranks; replace {} by global_batch_size and batch_size",
        label, labels.mention("max_tokens"));
  }
  if (!request.global_batch_size || !request.batch_size) {
    throw ConfigError("{}the micro-batches of a step must be the same for any number of ranks; set {} and {}",
                      label, labels.mention("global_batch_size"), labels.mention("batch_size"));
  }
  BatchPlan plan = {.global_batch_size = *request.global_batch_size,
                    .batch_size = *request.batch_size,
                    .data_ranks = data_ranks};
  if (plan.global_batch_size % plan.batch_size != 0) {
    throw ConfigError("{}{} ({}) must be a multiple of {} ({}), so that micro-batches have as many samples",
                      label, labels.mention("global_batch_size"), plan.global_batch_size,
                      labels.mention("batch_size"), plan.batch_size);
  }
  if (plan.micro_batches() < data_ranks) {
    throw ConfigError(
        "{}a step has {}, which is fewer than the {} ranks; set {} to at least {}, {} to at most {}, or start fewer ranks",
        label, counted_batches(plan.micro_batches()), data_ranks, labels.mention("global_batch_size"),
        plan.batch_size * data_ranks, labels.mention("batch_size"),
        std::max<int64_t>(1, plan.global_batch_size / data_ranks));
  }
  plan.grad_accumulation_steps = divide_up(plan.micro_batches(), data_ranks);
  if (request.grad_accumulation_steps.value_or(plan.grad_accumulation_steps) !=
      plan.grad_accumulation_steps) {
    plan.grad_accumulation_steps = *request.grad_accumulation_steps;
    refuse_contradiction(plan, divide_up(plan.global_batch_size, data_ranks * plan.grad_accumulation_steps),
                         labels);
  }
  return plan;
}

}  // namespace

BatchPlan resolve_batch(const BatchRequest& request, int64_t data_ranks, const OptionLabels& labels) {
  if (request.deterministic) return divide_deterministic(request, data_ranks, labels);
  const int64_t accumulation = request.grad_accumulation_steps.value_or(1);
  if (request.max_tokens) {
    if (request.global_batch_size || request.batch_size) refuse_two_units(request, labels);
    return {
        .grad_accumulation_steps = accumulation, .data_ranks = data_ranks, .max_tokens = *request.max_tokens};
  }
  if (request.global_batch_size) return divide_global(request, data_ranks, labels);
  const int64_t batch_size = request.batch_size.value_or(default_batch_size);
  return {.global_batch_size = batch_size * data_ranks * accumulation,
          .batch_size = batch_size,
          .grad_accumulation_steps = accumulation,
          .data_ranks = data_ranks};
}

std::string describe_batch(const BatchPlan& plan, int64_t ranks_per_layer) {
  const bool alone = ranks_per_layer == 1;
  const char* share = alone ? "rank" : "group";
  const std::string ranks =
      counted(plan.data_ranks, share) + (alone ? "" : fmt::format(" of {} ranks", ranks_per_layer));
  const std::string samples = counted(plan.global_batch_size, "sample");
  const std::string accumulation =
      plan.grad_accumulation_steps == 1
          ? ""
          : fmt::format(" x {} accumulation steps", plan.grad_accumulation_steps);
  if (plan.global_batch_size == 0) {
    return fmt::format("at most {} tokens per {} and micro-batch x {}{}", plan.max_tokens, share, ranks,
                       accumulation);
  }
  const bool divides =
      plan.batch_size * plan.data_ranks * plan.grad_accumulation_steps == plan.global_batch_size;
  if (!divides) {
    return fmt::format("{} per step: at most {} per {}{} on {}{}", samples, plan.batch_size, share,
                       accumulation.empty() ? "" : " and micro-batch", ranks, accumulation);
  }
  return fmt::format("{} per step = {} per {} x {}{}", samples, plan.batch_size, share, ranks, accumulation);
}

}  // namespace stretto
