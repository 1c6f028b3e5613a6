#include "stretto/trainer/run/session.h"

#include <algorithm>

#include <ATen/Parallel.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/nn/parameter_values.h"
#include "stretto/nn/tensor_parallel.h"
#include "stretto/strategy/batch_plan.h"
#include "stretto/trainer/api/parameter_rules.h"
#include "stretto/trainer/api/teachers.h"
#include "stretto/trainer/run/matmul_libraries.h"

namespace stretto::trainer {
namespace {

data::BatchOptions batch_options(const TrainingConfig& training, const BatchPlan& plan, const Mesh& mesh) {
  return {.seed = static_cast<uint64_t>(training.seed),
          .shuffle = training.shuffle,
          .global_batch_size = plan.global_batch_size,
          .max_tokens = plan.max_tokens,
          .batch_size = plan.batch_size,
          .grad_accumulation_steps = plan.grad_accumulation_steps,
          .same_parts = training.deterministic ? plan.micro_batches() : 0,
          .world_size = mesh.size(Axes::data),
          .rank = mesh.position(Axes::data)};
}

// The output folder may not exist yet on hosts other than the first.
std::filesystem::path made(const Recipe& recipe, const std::optional<std::filesystem::path>& folder) {
  if (folder == recipe.output) make_folders(*folder);
  return folder.value_or("");
}

parallel::EngineOptions engine_options(const Recipe& recipe, const BatchPlan& plan,
                                       const ComputePrecision& compute, std::vector<ParameterGroup> groups,
                                       bool manual) {
  const TrainingConfig& training = recipe.training;
  const EmaConfig& ema = recipe.ema;
  std::optional<parallel::AverageOptions> average;
  if (ema.decay) average = {.decay = *ema.decay, .warmup = ema.warmup};
  return {.strategy = training.strategy,
          .precision = compute.parameters,
          .bucket_bytes = training.bucket_mb * 1024 * 1024,
          .shared_parameters = training.shared_parameters == SharedParameters::automatic,
          .groups = std::move(groups),
          // Manual optimization sets gradients aside between micro-batches.
          .lazy_rows = !manual || (plan.grad_accumulation_steps == 1 && plan.max_tokens == 0),
          .fixed_order = training.deterministic ? plan.micro_batches() : 0,
          .average = average,
          .reshard_after_forward = training.reshard_after_forward,
          .min_unit_elements = training.wrap_min_parameters,
          .offload_optimizer = made(recipe, offload_folder(recipe)),
          .offload_parameters = made(recipe, parameter_folder(recipe)),
          .names = {{"offload_optimizer", "training.offload_optimizer"},
                    {"offload_parameters", "training.offload_parameters"}}};
}

// Parameters whose values the engine reads from `source` are moved without values.
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

// Throws ConfigError for a module that cannot be trained on the recipe's ranks of each layer.
void check_division(const Recipe& recipe, const Module& module, const parallel::EngineFacts& facts) {
  const std::string place = recipe.origins.label("training.mesh.tp");
  if (!facts.is_divided) {
    if (recipe.training.mesh.tp == 1) return;
    throw ConfigError(
        "{}: no parameter of the module is divided among ranks; use nn::ColumnLinear, nn::RowLinear and nn::VocabularyEmbedding with nn::TensorParallel::of(run.mesh.tensor_parallel()), or remove this",
        place);
  }
  if (recipe.training.mesh.sequence_parallel && !nn::divides_rows(module.root())) {
    throw ConfigError(
        "{}: no layer of the module divides rows; pass nn::TensorParallel::of(run.mesh.tensor_parallel()) to its layers, or remove this",
        recipe.origins.label("training.mesh.sequence_parallel"));
  }
  if (parallel::has_torch_dropout(module.root())) {
    throw ConfigError(
        "{}: torch::nn::Dropout draws from a generator per rank, and ranks with parts of one layer need equal masks; use stretto::nn::dropout",
        place);
  }
}

}  // namespace

Session::Session(const SessionParts& parts, OptimizerPlan plan, const TensorSource* values)
    : recipe(parts.recipe),
      mesh(parts.mesh),
      device(parts.device),
      module(parts.module),
      train(parts.train),
      compute(compute_precision(module.root(), recipe.training.precision)),
      callbacks(parts.callbacks),
      folder(is_main_rank() ? std::optional<RunFolder>(recipe.output) : std::nullopt),
      several(dynamic_cast<OptimizerSet*>(plan.optimizer.get())),
      engine(placed(module, values, device), mesh,
             engine_options(recipe, mesh.batch_plan(), compute, plan.groups, several != nullptr),
             std::move(plan.optimizer), values),
      schedule(std::move(plan.schedule)),
      cursor(train, batch_options(recipe.training, mesh.batch_plan(), mesh),
             recipe.data.train ? "data.train" : "the training data"),
      guard(recipe.training),
      loss_scale(recipe.training.precision == Precision::fp16
                     ? std::optional<LossScaleOptions>(recipe.loss_scale)
                     : std::nullopt),
      random(mesh, device),
      logged(mesh),
      step_log(recipe, mesh, parts.trackers),
      evaluator(*this, parts.validation, parts.other_sets),
      models(recipe, mesh, parts.rules, folder ? &*folder : nullptr, module) {
  optim::StepRates base = engine.facts().base_rates;
  base.lr *= lr_scale_of(recipe.optimizer, mesh.batch_plan().global_batch_size);
  schedule->start(base, count_total_steps());
  if (several != nullptr) manual.emplace(recipe, engine, *several, count_total_steps(), mesh.world());
  // libtorch seeds the generator differently in each process.
  at::manual_seed(static_cast<uint64_t>(recipe.training.seed));
  parallel::separate_random_numbers(mesh);
  module.root().train();
  if (recipe.training.deterministic) begin_deterministic();
  place_teachers(module, device, recipe.training.precision, mesh);
  if (engine.facts().reevaluates) require_whole_gradients(recipe, engine.facts().optimizer);
  check_division(recipe, module, engine.facts());
  products = choose_matmul_libraries(recipe, module.root(), train, mesh.batch_plan().batch_size,
                                     engine.facts().precision, mesh, device);
}

std::unique_ptr<Session> make_session(const SessionParts& parts, StateSource* source) {
  if (parts.mesh.batch_plan() == BatchPlan{})
    throw ConfigError("Trainer: the mesh has no batches; make it by make_mesh(), with the recipe");
  OptimizerPlan plan = make_plan(parts.recipe, parts.module, parts.mesh.batch_plan().global_batch_size);
  auto session = std::make_unique<Session>(parts, std::move(plan), parts.module.take_source().get());
  if (source != nullptr) session->restore(*source);
  return session;
}

std::vector<optim::Schedule*> Session::schedules() const {
  if (several == nullptr) return {schedule.get()};
  std::vector<optim::Schedule*> all;
  for (size_t i = 0; i < several->size(); ++i) all.push_back(&several->schedule(i));
  return all;
}

double Session::loss_factor() const {
  if (!loss_scale.in_use()) return 1;
  return loss_scale.value() / static_cast<double>(std::max<int64_t>(1, mesh.batch_plan().global_batch_size));
}

void Session::save_models(bool due) {
  if (!due) {
    if (is_main_rank()) models.retry();
    return;
  }
  const parallel::AveragedWeights average = engine.weights().averaged(recipe.ema.evaluate);
  require_finite();
  engine.weights().at_first([this](const ListedSource& weights) { models.save(weights); });
}

void Session::require_finite() {
  if (recipe.checkpoint.allow_nonfinite) return;
  const std::string name = engine.weights().first_nonfinite();
  if (name.empty()) return;
  throw Error(
      "step {}: the weights overflowed: {} holds NaN or infinity, so neither model nor checkpoint is saved; lower optimizer.lr or set training.max_grad_norm, or save anyway with checkpoint.allow_nonfinite: true",
      steps_done(), name);
}

// The steps done, plus the batches left in this epoch and those of the remaining epochs.
int64_t Session::count_total_steps() const {
  return recipe.training.max_steps.value_or(steps_done() + cursor.steps_left(recipe.training.epochs));
}

// Disables everything that depends on the number of ranks, except sums over them.
void Session::begin_deterministic() const {
  const std::string setting = "training.deterministic";
  if (!device.is_cpu())
    throw ConfigError("{}: only the CPU's kernels sum in a fixed order; set training.device to cpu", setting);
  if (parallel::has_torch_dropout(module.root())) {
    throw ConfigError(
        "{}: torch::nn::Dropout draws from a generator per rank; use stretto::nn::dropout, whose masks belong to samples",
        setting);
  }
  at::set_num_threads(1);  // kernels divide sums among threads
}

}  // namespace stretto::trainer
