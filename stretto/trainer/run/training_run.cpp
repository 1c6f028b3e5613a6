#include "stretto/trainer/run/training_run.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <optional>

#include <ATen/Parallel.h>

#include "stretto/base/clock.h"
#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/base/strings.h"
#include "stretto/config/topology_request.h"
#include "stretto/nn/functional.h"
#include "stretto/nn/parameter_values.h"
#include "stretto/parallel/fixed_order.h"
#include "stretto/parallel/phase.h"
#include "stretto/trainer/api/parameter_rules.h"
#include "stretto/trainer/api/teachers.h"
#include "stretto/trainer/run/matmul_libraries.h"

namespace stretto {
namespace {

data::BatchOptions batch_options(const TrainingConfig& training, const BatchPlan& plan, const Mesh& mesh) {
  return {.seed = static_cast<uint64_t>(training.seed),
          .shuffle = training.shuffle,
          .global_batch_size = plan.global_batch_size,
          .max_tokens = plan.max_tokens,
          .batch_size = plan.batch_size,
          .grad_accumulation_steps = plan.grad_accumulation_steps,
          .same_parts = training.deterministic,
          .world_size = mesh.size(Axes::data),
          .rank = mesh.position(Axes::data)};
}

EngineOptions engine_options(const TrainingConfig& training, const BatchPlan& plan, const EmaConfig& ema,
                             const ComputePrecision& compute, std::vector<ParameterGroup> groups) {
  std::optional<AverageOptions> average;
  if (ema.decay) average = {.decay = *ema.decay, .warmup = ema.warmup};
  return {.strategy = training.strategy,
          .precision = compute.parameters,
          .bucket_bytes = training.bucket_mb * 1024 * 1024,
          .shared_parameters = training.shared_parameters == SharedParameters::automatic,
          .groups = std::move(groups),
          .fixed_order = training.deterministic ? plan.grad_accumulation_steps : 0,
          .average = average,
          .reshard_after_forward = training.reshard_after_forward,
          .min_unit_elements = training.wrap_min_parameters,
          .offload_optimizer = training.offload_optimizer.value_or(""),
          .names = {{"offload_optimizer", "training.offload_optimizer"}}};
}

// Parameters whose values the engine reads from `source` are moved without any.
torch::nn::Module& placed(Module& module, const TensorSource* source, at::Device device) {
  if (source != nullptr) nn::drop_values(module.root(), *source, device);
  module.root().to(device);
  return module.root();
}

OptimizerPlan make_plan(const Recipe& recipe, Module& module, int64_t global_batch_size) {
  OptimizerPlan plan = module.configure_optimizers(plan_of(recipe, global_batch_size));
  if (module.automatic_optimization() != plan.several.empty()) {
    throw ConfigError(
        "configure_optimizers: automatic_optimization() is {}, so OptimizerPlan::several must {}",
        module.automatic_optimization(),
        plan.several.empty() ? "name the optimizers that training_step steps"
                             : "be empty: the Trainer steps one optimizer");
  }
  if (!plan.several.empty()) {
    plan.optimizer = std::make_unique<OptimizerSet>(std::move(plan.several));
    plan.schedule = optim::constant();  // each optimizer has its own
  }
  if (plan.optimizer == nullptr)
    throw ConfigError("configure_optimizers returned a plan without an optimizer");
  if (plan.schedule == nullptr) throw ConfigError("configure_optimizers returned a plan without a schedule");
  plan.groups = combine_groups(module.root(), recipe, std::move(plan.groups));
  return plan;
}

}  // namespace

TrainingRun::TrainingRun(const Recipe& recipe, Module& module, const data::Dataset& dataset, const Mesh& mesh,
                         at::Device device)
    : TrainingRun(recipe, module, dataset, mesh, device,
                  resolve(topology_request(recipe), mesh.shape()).batch) {}

TrainingRun::TrainingRun(const Recipe& recipe, Module& module, const data::Dataset& dataset, const Mesh& mesh,
                         at::Device device, const BatchPlan& batch)
    : TrainingRun(recipe, module, dataset, mesh, device, batch,
                  make_plan(recipe, module, batch.global_batch_size), module.take_source().get()) {}

TrainingRun::TrainingRun(const Recipe& recipe, Module& module, const data::Dataset& dataset, const Mesh& mesh,
                         at::Device device, const BatchPlan& batch, OptimizerPlan plan,
                         const TensorSource* values)
    : training_(recipe.training),
      data_name_(recipe.data.train ? "data.train" : "the training data"),
      batch_(batch),
      module_(module),
      dataset_(dataset),
      mesh_(mesh),
      device_(device),
      compute_(compute_precision(module.root(), training_.precision)),
      several_(dynamic_cast<OptimizerSet*>(plan.optimizer.get())),
      engine_(placed(module, values, device), mesh,
              engine_options(training_, batch_, recipe.ema, compute_, plan.groups), std::move(plan.optimizer),
              values),
      runner_(module, dataset, mesh,
              {.device = device,
               .autocast = compute_.autocast,
               .collective_forward = engine_.facts().passes_are_collective}),
      schedule_(std::move(plan.schedule)),
      cursor_(dataset, batch_options(training_, batch_, mesh)),
      guard_(training_) {
  optim::StepRates base = engine_.facts().base_rates;
  base_lr_ = base.lr;
  lr_scale_ = lr_scale_of(recipe.optimizer, batch_.global_batch_size);
  base.lr *= lr_scale_;
  schedule_->start(base, count_total_steps());
  if (several_ != nullptr)
    manual_.emplace(recipe, engine_, *several_, batch_.grad_accumulation_steps, count_total_steps());
  at::manual_seed(static_cast<uint64_t>(training_.seed));  // libtorch seeds it differently in each process
  separate_random_numbers(mesh.position(Axes::sum));
  module.root().train();
  if (training_.deterministic) begin_deterministic();
  place_teachers(module, device, training_.precision, mesh);
  if (engine_.facts().reevaluates && (training_.max_grad_norm > 0 || training_.max_grad_value)) {
    throw ConfigError(
        "{}: {} compares gradients with changes of the loss, so it cannot use clipped gradients; set training.max_grad_norm to 0 and remove max_grad_value",
        recipe.origins.label(training_.max_grad_value ? "training.max_grad_value" : "training.max_grad_norm"),
        engine_.facts().optimizer);
  }
  products_ = choose_matmul_libraries(recipe, module.root(), dataset, batch_.batch_size,
                                      engine_.facts().precision, mesh, device);
}

// What would depend on the number of ranks beside sums over them.
void TrainingRun::begin_deterministic() {
  const std::string setting = "training.deterministic";
  if (!device_.is_cpu())
    throw ConfigError("{}: only the CPU's kernels sum in a fixed order; set training.device to cpu", setting);
  if (has_torch_dropout(module_.root())) {
    throw ConfigError(
        "{}: torch::nn::Dropout draws from a generator per rank; use stretto::nn::Dropout, whose masks belong to samples",
        setting);
  }
  at::set_num_threads(1);  // kernels divide sums among threads
}

// What the steps of the next global batch see.
PassInfo TrainingRun::pass_info() const {
  return {.forward = {.training = true,
                      .key = hash64(std::array<uint64_t, 2>{static_cast<uint64_t>(training_.seed),
                                                            static_cast<uint64_t>(epoch())}),
                      .kernels = nn::parse_kernels(training_.kernels),
                      .recompute_every = training_.activation_checkpointing},
          .step = steps_done(),
          .epoch = epoch(),
          .validation_set = {}};
}

// Steps done, plus the batches left in this epoch and those of the remaining epochs.
int64_t TrainingRun::count_total_steps() const {
  return training_.max_steps.value_or(steps_done() + cursor_.steps_left(training_.epochs));
}

// Requests of any rank of the job, from those of Axes::sum.
Requests TrainingRun::of_any_rank(Requests mine) const {
  Group& world = mesh_.world();
  if (&world == &mesh_.group(Axes::sum)) return mine;
  const auto flags = mine.flags();
  Tensor asked = at::tensor(at::ArrayRef<double>(flags), at::kDouble).to(world.device());
  world.all_reduce(asked, ReduceOp::max).wait();
  return Requests::of(asked.cpu().const_data_ptr<double>());
}

StepReport TrainingRun::step(const Requests& requests) {
  const auto start = std::chrono::steady_clock::now();
  const double communicated = mesh_.group(Axes::sum).seconds_inside(), data_before = runner_.data_seconds();
  StepReport report;
  report.epoch = epoch();
  report.epochs_before = cursor_.epochs_done();
  if (manual_) return step_manually(requests, std::move(report));
  const data::GlobalBatch batch = cursor_.batch();
  LoggedWindows logged;
  StepTotals mine = runner_.train(batch, pass_info(), engine_, logged);
  mine.requests = requests;
  StepTotals::Packed sums = mine.pack();
  {
    RECORD_USER_SCOPE(phase::wait);
    engine_.finish(sums);
  }
  const StepTotals totals = StepTotals::unpack(sums);
  if (training_.deterministic && engine_.buffers_changed()) {
    throw ConfigError(
        "training.deterministic: buffers of the model change in training, such as running statistics, by the samples of each rank; use layers without them, such as LayerNorm");
  }
  const double loss_sum = totals.loss, count = totals.count;
  if (count <= 0) {
    throw DataError("step {}: the losses of the global batch count {} samples: there are no labels",
                    steps_done() + 1, count);
  }
  const double norm = engine_.gradients().norm();
  const bool finite = std::isfinite(loss_sum) && std::isfinite(norm);
  optim::StepRates rates = schedule_->rates(steps_done());
  rates.lr *= guard_.lr_scale();
  report.requests = of_any_rank(totals.requests);
  switch (guard_.judge(loss_sum / count, norm / count, steps_done() + 1,
                       finite ? "" : find_culprit(mine, batch))) {
    case StepGuard::Verdict::take: {
      RECORD_USER_SCOPE(phase::optimizer);
      report.grad_norm = norm / count;
      show_gradients(batch, 1 / count, report);
      if (engine_.facts().reevaluates) {
        engine_.step({.rates = rates, .grad_scale = 1 / count, .loss = loss_sum / count, .again = [&] {
                        return evaluate_again(batch);
                      }});
      } else {
        engine_.step({.rates = rates, .grad_scale = clip_gradients(norm, count)});
      }
      keep_logged(logged, totals);
      break;
    }
    case StepGuard::Verdict::skip:
      engine_.skip_step();
      report.taken = false;
      break;
    case StepGuard::Verdict::rollback:
      engine_.gradients().clear();
      report.rollback = guard_.reason();
      return report;
  }
  report.loss = loss_sum / count;
  if (!report.taken) report.grad_norm = norm / count;
  report.lr = rates.lr;
  finish_report(batch, report);
  report.seconds = seconds_since(start);
  report.communication = mesh_.group(Axes::sum).seconds_inside() - communicated;
  report.data_wait = runner_.data_seconds() - data_before;
  return report;
}

// After a step was taken or skipped.
void TrainingRun::finish_report(const data::GlobalBatch& batch, StepReport& report) {
  cursor_.advance();
  report.epoch_ends = cursor_.epoch_begins();
  report.step = steps_done();
  report.epochs = cursor_.epochs_done();
  report.samples = std::ssize(batch.samples);
  for (const int64_t sample : batch.samples) report.tokens += dataset_.length_of(sample);
}

// The factor by which the optimizer multiplies gradients that are sums over `count` samples. `norm` is theirs.
double TrainingRun::clip_gradients(double norm, double count) {
  if (training_.max_grad_value) {
    engine_.gradients().clamp(*training_.max_grad_value * count);
    if (training_.max_grad_norm > 0) norm = engine_.gradients().norm();
  }
  return clip_scale(norm / count, training_.max_grad_norm) / count;
}

// What the modules log is of the first evaluation alone.
optim::Evaluation TrainingRun::evaluate_again(const data::GlobalBatch& batch) {
  LoggedWindows ignored;
  const StepTotals mine = runner_.train(batch, pass_info(), engine_, ignored);
  std::array<double, 2> sums = {mine.loss, mine.count};
  engine_.finish(sums);
  const auto [loss_sum, count] = sums;
  return {loss_sum / count, 1 / count};
}

std::string TrainingRun::describe_lr_scale() const {
  if (lr_scale_ == 1) return "";
  return fmt::format("lr         {:g} = {:g} x {:g}: scaled for the global batch of {} samples\n",
                     base_lr_ * lr_scale_, base_lr_, lr_scale_, batch_.global_batch_size);
}

std::string TrainingRun::describe_order() const {
  if (!training_.deterministic) return "";
  const auto sums = std::bit_width(static_cast<uint64_t>(batch_.grad_accumulation_steps - 1));
  return fmt::format(
      "order      fixed: the same bits for 1, 2, 4, ... ranks with this global batch in {} micro-batches; {} per rank for sums, one thread\n",
      batch_.grad_accumulation_steps * batch_.data_ranks,
      human_bytes(static_cast<double>(sums * engine_.facts().memory.gradients)));
}

std::string TrainingRun::describe() {
  return fmt::format(
      "{}\n"
      "{}comm       {}\n"
      "batch      {}\n"
      "{}{}{}"
      "{}\n"
      "run        {} steps, {} per epoch; {} samples, {} tokens{}",
      stretto::describe(engine_.facts(), "model", describe_precision(training_.precision, compute_, device_)),
      products_ ? "products   " + products_->describe() + "\n" : "", mesh_.group(Axes::sum).transport(),
      describe_batch(batch_), describe_order(), describe_teachers(module_), describe_lr_scale(),
      manual_ ? manual_->describe()
              : describe_groups(engine_.facts().tensors, base_lr_ * lr_scale_, engine_.facts().optimizer),
      total_steps(), steps_per_epoch(), dataset_.size(), data::lengths_of(dataset_).total(),
      mesh_.size(Axes::data) > 1 && has_torch_dropout(module_.root())
          ? "\ndropout    torch::nn::Dropout uses a separate generator per rank: results depend on the world size"
          : "");
}

}  // namespace stretto
