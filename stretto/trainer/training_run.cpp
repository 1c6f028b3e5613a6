#include "stretto/trainer/training_run.h"

#include <array>
#include <cmath>
#include <numeric>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/base/strings.h"
#include "stretto/data/split.h"
#include "stretto/nn/functional.h"

namespace stretto {
namespace {

std::unique_ptr<optim::Optimizer> make_optimizer(const OptimizerConfig& config) {
  if (config.type == "SGD") {
    return optim::sgd({config.lr, config.momentum, config.dampening, config.weight_decay, config.nesterov});
  }
  return optim::adamw({config.lr, config.betas[0], config.betas[1], config.eps, config.weight_decay});
}

data::SamplerOptions sampler_options(const TrainingConfig& training, const BatchPlan& plan) {
  data::SamplerOptions options;
  options.seed = static_cast<uint64_t>(training.seed);
  options.shuffle = training.shuffle;
  options.global_batch_size = std::max<int64_t>(1, plan.global_batch_size);
  if (training.max_tokens) options.max_tokens = *training.max_tokens * plan.ranks * plan.grad_accumulation_steps;
  return options;
}

optim::ScheduleOptions schedule_options(const Recipe& recipe, int64_t steps_an_epoch) {
  optim::ScheduleOptions options;
  options.type = recipe.scheduler.type;
  options.total_steps = recipe.training.max_steps.value_or(recipe.training.epochs * steps_an_epoch);
  options.warmup_steps = recipe.scheduler.num_warmup_steps.value_or(static_cast<int64_t>(
      std::ceil(recipe.scheduler.warmup_ratio.value_or(0) * static_cast<double>(options.total_steps))));
  return options;
}

}  // namespace

TrainingRun::TrainingRun(const Recipe& recipe, Module& module, const data::Dataset& dataset, Group& group,
                         at::Device device)
    : training_(recipe.training),
      plan_(resolve_batch(recipe.training, group.size(), recipe.origins)),
      module_(module),
      dataset_(dataset),
      group_(group),
      device_(device),
      tensors_((module.root().to(device), collect_tensors(module.root()))),
      arena_(tensors_.trained, parse_precision(recipe.training.precision), plain_memory()),
      engine_(arena_, group, recipe.training.bucket_mb * 1024 * 1024),
      optimizer_(make_optimizer(recipe.optimizer)),
      sampler_(dataset.lengths(), sampler_options(recipe.training, plan_)),
      schedule_(schedule_options(recipe, sampler_.batches(0))) {
  at::NoGradGuard no_grad;
  for (auto& [name, tensor] : tensors_.constant) {
    if (!tensor.is_floating_point()) continue;
    tensor.set_data(tensor.to(compute_dtype(parse_precision(recipe.training.precision))));
  }
  engine_.synchronise_start(tensors_.constant);
  optimizer_->bind(arena_.buffers(), arena_.optimizer_ranges(), plain_memory());
  module.root().train();
}

Loss TrainingRun::accumulate(const std::vector<int64_t>& batch, int64_t epoch) {
  StepContext context;
  context.forward = {.training = true,
                     .key = hash64(std::array<uint64_t, 2>{static_cast<uint64_t>(training_.seed),
                                                           static_cast<uint64_t>(epoch)})};
  context.step = steps_done();
  context.epoch = epoch;
  context.rank = group_.rank();
  context.world_size = group_.size();
  const int64_t micro_steps = plan_.batch_size > 0
                                  ? data::count_micro_steps(std::ssize(batch), group_.size(), plan_.batch_size)
                                  : plan_.grad_accumulation_steps;
  const auto mine = data::split_batch(batch, dataset_.lengths(), group_.size(), group_.rank(), micro_steps);
  Loss total = {at::zeros({}, at::TensorOptions(at::kDouble).device(device_)), 0};
  for (size_t micro = 0; micro < mine.size(); ++micro) {
    const bool last = micro + 1 == mine.size();
    if (mine[micro].empty()) {
      engine_.backward({}, last);
      continue;
    }
    const Loss loss = module_.training_step(dataset_.pack(mine[micro]).to(device_), context);
    engine_.backward(loss.sum, last);
    total.sum += loss.sum.detach();
    total.count += loss.count;
  }
  return total;
}

double TrainingRun::clip_scale(double count, double norm) const {
  const double mean_norm = norm / count;
  const bool clips = training_.max_grad_norm > 0 && mean_norm > training_.max_grad_norm;
  // As torch's clip_grad_norm_: the limit over the norm plus a little.
  return clips ? training_.max_grad_norm / (mean_norm + 1e-6) / count : 1 / count;
}

void TrainingRun::refuse_nonfinite(double loss) const {
  const std::string parameter = engine_.first_nonfinite();
  throw Error("step {}: {} is not finite{}; the step was not taken. Lower optimizer.lr, set training.max_grad_norm, or "
              "look for broken samples",
              steps_done() + 1, std::isfinite(loss) ? "a gradient" : fmt::format("the loss ({})", loss),
              parameter.empty() ? "" : fmt::format(" (first in the gradient of {})", parameter));
}

StepReport TrainingRun::step() {
  StepReport report;
  report.epoch = steps_done() / steps_an_epoch();
  const auto batch = sampler_.batch(report.epoch, steps_done() % steps_an_epoch());
  const Loss mine = accumulate(batch, report.epoch);
  const auto totals = engine_.finish({mine.sum.item<double>(), mine.count});
  if (totals.count <= 0) {
    throw DataError("step {}: the global batch has no label to learn from", steps_done() + 1);
  }
  const double norm = engine_.gradient_norm();
  if (!std::isfinite(totals.loss_sum) || !std::isfinite(norm)) refuse_nonfinite(totals.loss_sum);
  const double factor = optim::schedule_factor(schedule_, steps_done());
  optimizer_->step(factor, clip_scale(totals.count, norm));
  arena_.verify();
  report.step = steps_done();
  report.loss = totals.loss_sum / totals.count;
  report.grad_norm = norm / totals.count;
  report.lr = optimizer_->base_lr() * factor;
  report.samples = std::ssize(batch);
  for (const int64_t sample : batch) report.tokens += dataset_.lengths()[static_cast<size_t>(sample)];
  return report;
}

NamedTensors TrainingRun::weights() const {
  NamedTensors weights;
  for (const auto& parameter : arena_.parameters()) weights[parameter.info.name] = arena_.master_view(parameter);
  for (const auto& [name, tensor] : tensors_.constant) weights[name] = tensor.detach();
  return weights;
}

std::string TrainingRun::describe() const {
  const Precision precision = parse_precision(training_.precision);
  const std::string master = precision == Precision::fp64 ? "fp64" : "fp32";
  const bool widened = precision == Precision::bf16 && device_.is_cpu() && !nn::cpu_has_bf16();
  const auto buffer_bytes = static_cast<double>(arena_.buffers().master.nbytes());
  const double compute_bytes = arena_.buffers().compute.defined() ? arena_.buffers().compute.nbytes() : 0;
  const double slots = static_cast<double>(optimizer_->slot_names().size());
  const double total = buffer_bytes * (2 + slots) + compute_bytes;
  return fmt::format(
      "model      {} trained parameters in {} units, {} gradient buckets\n"
      "types      compute {}{} | master {} | gradient {} | reduce {}\n"
      "memory     {} a rank: master {}, gradient {}, compute copy {}, {} {}; activations come on top\n"
      "batch      {} samples a step = {} a rank x {} ranks x {} accumulation steps\n"
      "run        {} steps, {} an epoch; {} samples, {} tokens",
      arena_.trained_elements(), arena_.units().size(), engine_.buckets(), training_.precision,
      widened ? " (this CPU has no bf16 instructions: products are computed in fp32 and rounded)" : "", master, master,
      master, human_bytes(total), human_bytes(buffer_bytes), human_bytes(buffer_bytes), human_bytes(compute_bytes),
      optimizer_->name(), human_bytes(buffer_bytes * slots),
      plan_.global_batch_size > 0 ? std::to_string(plan_.global_batch_size)
                                  : fmt::format("as many as fit {} tokens a rank", training_.max_tokens.value_or(0)),
      plan_.batch_size > 0 ? std::to_string(plan_.batch_size) : "a share", plan_.ranks, plan_.grad_accumulation_steps,
      total_steps(), steps_an_epoch(), dataset_.size(),
      std::accumulate(dataset_.lengths().begin(), dataset_.lengths().end(), int64_t{0}));
}

}  // namespace stretto
