#include "stretto/lite/lite.h"

#include <algorithm>
#include <cmath>

#include <ATen/autocast_mode.h>

#include "stretto/base/enum_names.h"
#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/base/log.h"
#include "stretto/base/tensor_layout.h"
#include "stretto/base/user_cache.h"
#include "stretto/data/global_batches.h"
#include "stretto/lite/session.h"
#include "stretto/nn/functional.h"
#include "stretto/nn/layer_kinds.h"
#include "stretto/nn/tensor_parallel.h"

namespace stretto {
namespace {

using lite::Act;

// Checksum of the names, dtypes, shapes and requires_grad of the parameters; exactly representable as a
// double. If layers are divided among ranks, shapes are those of whole parameters.
int64_t shape_checksum(const torch::nn::Module& module, bool divided) {
  std::string shapes;
  for (const nn::LayerParameter& parameter : nn::layer_parameters(module)) {
    const Tensor& values = parameter.tensor;
    const std::vector<int64_t> shape = divided ? parameter.layout().global : values.sizes().vec();
    shapes += fmt::format("{} {} [{}]{}\n", parameter.name, c10::toString(values.scalar_type()),
                          fmt::join(shape, ", "), values.requires_grad() ? "" : " frozen");
  }
  return static_cast<int64_t>(hash64(shapes) >> 12);
}

MeshShape shape_of(const lite::Settings& settings, Group& world) {
  const TopologyRequest request = lite::topology_request(settings);
  const std::vector<std::string> hosts = world.all_gather_bytes(world.host());
  const Topology topology = resolve(request, hosts);
  const std::string slow = slow_topology(topology, hosts, request.labels);
  if (!slow.empty() && world.rank() == 0) log::warning("{}", slow);
  return topology.shape;
}

// Throws ConfigError for a model to train that the options cannot divide.
void check_division(const torch::nn::Module& module, const parallel::ModuleTensors& tensors,
                    const lite::Settings& settings, bool has_torch_optimizer) {
  if (settings.tp == 1 || tensors.trainable.empty()) return;
  const auto is_cut = [](const auto& parameter) { return !parameter.layout.cuts.empty(); };
  if (std::ranges::none_of(tensors.trainable, is_cut)) {
    throw ConfigError(
        "setup: no parameter of the model is divided among the {} ranks of Lite's tp; use nn::ColumnLinear, nn::RowLinear and nn::VocabularyEmbedding with nn::TensorParallel::of(lite.tensor_parallel()), or leave tp at 1",
        settings.tp);
  }
  if (settings.sequence_parallel && !nn::divides_rows(module)) {
    throw ConfigError(
        "setup: no layer of the model divides rows, which LiteOptions::sequence_parallel requests; pass nn::TensorParallel::of(lite.tensor_parallel()) to its layers, or remove the option");
  }
  if (has_torch_optimizer) {
    throw ConfigError(
        "setup: torch's optimizers do not know that the layers of the model are divided among ranks (tp); use one of stretto's");
  }
  if (parallel::has_torch_dropout(module)) {
    throw ConfigError(
        "setup: torch::nn::Dropout draws from a generator per rank, and ranks with parts of one layer (tp) need masks of the whole layer; use stretto::nn::dropout");
  }
}

}  // namespace

lite::Session::Session(const LiteOptions& options)
    : settings(check(options)),
      job((start_or_join(options), comm::join_job(settings.device, "Lite: accelerator"))),
      mesh(*job.group, shape_of(settings, *job.group), BatchPlan(), settings.sequence_parallel),
      agreement(mesh),
      loop(mesh, agreement, job.device),
      loss_scale(settings.precision == Precision::fp16 ? std::optional(options.loss_scale) : std::nullopt),
      random(mesh, job.device) {}

Lite::Lite(const LiteOptions& options) : session_(std::make_unique<lite::Session>(options)) {
  log::set_rank(global_rank(), /*prints_info=*/is_global_zero());
}

// Ranks exit together, so that no rank mistakes another's exit for a failure.
Lite::~Lite() {
  if (std::uncaught_exceptions() > 0) return;
  try {
    session_->agreement.agree({.act = Act::leave});
  } catch (const std::exception& error) {
    log::error("{}", error.what());
  }
}

int Lite::global_rank() const { return session_->job.info.rank; }
int Lite::local_rank() const { return session_->job.info.local_rank; }
int Lite::node_rank() const { return session_->job.info.group_rank; }
int Lite::world_size() const { return session_->job.group->size(); }
at::Device Lite::device() const { return session_->job.device; }
const Mesh& Lite::mesh() const { return session_->mesh; }
double Lite::loss_scale() const { return session_->loss_scale.value(); }
lite::Loop& Lite::loop() const { return session_->loop; }

void Lite::register_for_checkpointing(torch::optim::LRScheduler& scheduler) {
  session_->schedulers.push_back(&scheduler);
}

lite::Model& Lite::add_model(const torch::nn::Module& module, const OptimizerCounts& counts,
                             std::unique_ptr<optim::Optimizer> optimizer) {
  if (counts.own > 0 && optimizer == nullptr) throw ConfigError("setup: the optimizer is a null pointer");
  for (const lite::Model& model : session_->models) {
    if (&model.module() == &module)
      throw ConfigError("setup: this model was already set up, as model {}", model.number());
    for (const Tensor& parameter : module.parameters()) {
      if (model.holds(parameter)) {
        throw ConfigError(
            "setup: this model shares a parameter {} with model {}, which was already set up; set up one module that holds both",
            describe(parameter), model.number());
      }
    }
  }
  if (counts.own > 1 || (counts.own == 1 && counts.torch > 0)) {
    throw ConfigError(
        "setup: an optimizer of stretto steps all parameters of its model, so it must be the only one; found {} of stretto's and {} of torch's",
        counts.own, counts.torch);
  }
  const auto number = static_cast<int64_t>(session_->models.size());
  session_->agreement.agree(
      {.act = Act::setup, .subject = number, .number = shape_checksum(module, session_->settings.tp > 1)});
  if (session_->models.empty()) parallel::separate_random_numbers(session_->mesh);

  const nn::LayerKinds layers = nn::layer_kinds(module);
  const Precision wanted = session_->settings.precision;
  const bool half = is_half(wanted), copies = half && !layers.own.empty();
  if (wanted == Precision::fp16 && optimizer != nullptr && optimizer->reevaluates()) {
    throw ConfigError(
        "setup: {} evaluates a batch several times with one loss scale, which precision fp16 does not support; use precision bf16 or fp32",
        optimizer->name());
  }
  if (copies && (!layers.other.empty() || counts.torch > 0)) {
    throw ConfigError(
        "setup: precision {0} keeps a {0} copy of stretto::nn layers (such as {1}), which {2}; use precision fp32",
        name_of(wanted), layers.own,
        counts.torch > 0
            ? "torch's optimizers cannot step; use one of stretto's, or"
            : fmt::format(
                  "cannot be mixed with other layers (such as {}) in one model; set them up as two models, or",
                  layers.other));
  }
  auto& movable = const_cast<torch::nn::Module&>(module);
  // It names the parameter in its error, unlike Module::to.
  check_division(module, parallel::collect_tensors(movable), session_->settings, counts.torch > 0);
  movable.to(session_->job.device);
  const bool shares = find_sharding(session_->settings.strategy).parameters == Held::sharded;
  const Precision precision = half && !copies ? Precision::fp32 : wanted;
  lite::Model& model = session_->models.emplace_back(
      static_cast<size_t>(number), movable, session_->mesh,
      lite::ModelOptions{.engine = {.strategy = session_->settings.strategy,
                                    .precision = precision,
                                    .bucket_bytes = session_->settings.bucket_bytes,
                                    .gradients_to_owners = false,  // programs may read and clip any gradient,
                                    .shared_parameters = shares,   // and write any weight, on every rank
                                    .lazy_rows = false},           // programs may read any weight at any time
                         .skips_unused = counts.torch > 0},
      std::move(optimizer));
  session_->agreement.set_models(session_->models.size());
  if (half && !copies) session_->loop.set_autocast(compute_dtype(wanted));

  std::string compute(name_of(wanted));
  if (half) compute += copies ? " (a copy of the parameters)" : " (autocast)";
  if (wanted == Precision::bf16 && session_->job.device.is_cpu() && !nn::cpu_has_bf16())
    compute += " on a CPU without bf16 instructions";
  log::info("{}", model.describe(compute));
  if (session_->settings.tp > 1) log::info("mesh       {}", session_->mesh.describe());
  if (session_->mesh.size(Axes::sum) > 1 && parallel::has_torch_dropout(module))
    log::info(
        "dropout    torch::nn::Dropout uses a separate generator per rank: results depend on the world size");
  if (!session_->products && session_->job.device.is_cpu() && !layers.own.empty())
    choose_matmul_libraries(module, precision);
  return model;
}

void Lite::choose_matmul_libraries(const torch::nn::Module& module, Precision precision) {
  const parallel::MatmulOptions options = {.requested = session_->settings.products,
                                           .dtype = parallel::matmul_type(precision),
                                           .cache = user_cache_folder(),
                                           .names = {{"requested", "LiteOptions::products"}}};
  session_->products =
      std::make_unique<parallel::MatmulLibraries>(module, options, session_->mesh.group(Axes::stage));
  log::info("matmul     {}", session_->products->describe());
}

lite::Model& Lite::find(const torch::nn::Module& module) {
  for (lite::Model& model : session_->models) {
    if (&model.module() == &module) return model;
  }
  throw ConfigError("Lite: this model was not set up; call setup(model, optimizer) first");
}

LiteOptimizer Lite::add_optimizer(lite::Model& model) {
  model.engine("setup");
  model.set_optimizer_number(session_->optimizers.size());
  session_->optimizers.push_back(lite::engine_optimizer(model, session_->loss_scale));
  return LiteOptimizer(*session_->optimizers.back());
}

LiteOptimizer Lite::add_optimizer(lite::Model& model, std::shared_ptr<torch::optim::Optimizer> optimizer) {
  if (optimizer == nullptr) throw ConfigError("setup: the optimizer is a null pointer");
  model.engine("setup");
  session_->optimizers.push_back(lite::torch_optimizer(model, std::move(optimizer), session_->loss_scale));
  return LiteOptimizer(*session_->optimizers.back());
}

LiteLoader<lite::DatasetBatches> Lite::setup(const data::Dataset& dataset,
                                             const DatasetLoaderOptions& options) {
  lite::LoaderRecord& record = session_->loop.record(&dataset);
  auto shares = std::make_shared<lite::ShareQueue>();
  const data::BatchOptions cut = {.seed = options.seed,
                                  .shuffle = options.shuffle,
                                  .global_batch_size = options.batch_size,
                                  .world_size = session_->mesh.size(Axes::data),
                                  .rank = session_->mesh.position(Axes::data)};
  auto batches = std::make_shared<lite::DatasetBatches>(dataset, cut, record, shares);
  return {batches, record, session_->loop, Distribute::split, shares};
}

void Lite::warn_once(bool& warned, const std::string& text) const {
  if (!warned && is_global_zero()) log::warning("{}", text);
  warned = true;
}

double Lite::backward(const Tensor& loss, bool keep_graph) {
  double weight = 1.0 / session_->mesh.size(Axes::data);
  if (const auto& share = session_->loop.share()) {
    weight = static_cast<double>(share->count) / static_cast<double>(share->global_count);
  } else if (session_->mesh.size(Axes::data) > 1) {
    warn_once(
        warned_equal_weights_,
        "backward outside of a loop over a loader that was set up: batches are not divided among the ranks, and all ranks' losses have equal weight; use lite.setup(loader) to divide batches");
  }
  return run_backward(loss, weight, std::nullopt, keep_graph);
}

double Lite::backward(const Loss& loss, bool keep_graph) {
  if (!(loss.count >= 0))
    throw Error("backward: the loss counts {} samples; expected at least 0", loss.count);
  const bool is_dummy = session_->loop.share() && session_->loop.share()->count == 0;
  return is_dummy ? run_backward(loss.sum, 0, 0, keep_graph)
                  : run_backward(loss.sum, 1, loss.count, keep_graph);
}

double Lite::run_backward(const Tensor& loss, double weight, std::optional<double> count, bool keep_graph) {
  if (session_->models.empty())
    throw Error("backward: no model was set up; call setup(model, optimizer) first");
  if (!loss.defined() || loss.numel() != 1) {
    throw ShapeError("backward: the loss is {}; expected a single element: take its mean", describe(loss));
  }
  if (session_->loop.autocast_dtype() && !autocast_was_used_ &&
      !at::autocast::is_autocast_enabled(device().type())) {
    throw Error(
        "backward: precision is {}, but the forward ran without autocast; loop over lite.setup(loader), or hold `auto guard = lite.autocast();` around the forward",
        name_of(session_->settings.precision));
  }
  autocast_was_used_ = false;
  const bool synchronises = no_sync_ == 0;
  std::vector<lite::Model*> parts;
  std::vector<Tensor> others;
  lite::Announcement announcement{.act = Act::backward,
                                  .counts = std::vector<double>(session_->models.size(), 0)};
  for (lite::Model& model : session_->models) {
    if (!model.takes_part(loss, others)) continue;
    parts.push_back(&model);
    announcement.subject |= int64_t{1} << model.number();
  }
  if (parts.empty()) {
    throw Error("backward: the loss depends on no trainable parameter of a model that was set up");
  }
  if (!others.empty()) check_other_leaves(others);
  const bool accumulates = std::ranges::any_of(session_->models, &lite::Model::accumulates);
  if (!accumulates) session_->scale_in_use = session_->loss_scale.value();
  const double scale = session_->scale_in_use;
  for (lite::Model* model : parts) {
    model->extend_window(count);
    announcement.counts[model->number()] = model->window_count();
    announcement.has_unused |= model->has_unused();
    announcement.buffers_changed |= model->buffers_changed();
  }
  const double value = loss.item<double>();
  announcement.loss = value * weight;
  announcement.loss_count = count.value_or(weight);
  announcement.number = session_->loop.divided_batch();
  if (synchronises) session_->agreement.announce(announcement);  // before the first gradient reduction
  for (lite::Model* model : parts) model->begin_backward(synchronises);
  try {
    if (session_->loss_scale.in_use()) {
      parallel::scaled_loss(loss, weight * scale).backward({}, keep_graph);
    } else {
      loss.backward(weight == 1 ? Tensor() : at::full_like(loss, weight), keep_graph);
    }
  } catch (...) {
    for (lite::Model* model : parts) model->abort_backward();
    throw;
  }
  for (lite::Model* model : parts) model->end_backward(synchronises);
  forget_casts();
  if (!synchronises) return count ? value / std::max(*count, 1.0) : value;

  const lite::Agreed agreed = session_->agreement.settle();
  const double mean = agreed.loss / agreed.loss_count;
  for (lite::Model* model : parts) {
    model->finish({agreed.counts[model->number()], scale}, agreed.has_unused, mean);
    if (agreed.buffers_changed) model->synchronise_buffers();
  }
  return mean;
}

// Throws for leaves of the graph that were added to a model after setup; warns about leaves outside all
// models.
void Lite::check_other_leaves(const std::vector<Tensor>& leaves) {
  for (const Tensor& leaf : leaves) {
    const auto holds = [&](const lite::Model& model) { return model.holds(leaf); };
    if (std::ranges::any_of(session_->models, holds)) continue;
    for (const lite::Model& model : session_->models) {
      for (const auto& item : model.module().named_parameters()) {
        if (!item.value().is_same(leaf)) continue;
        throw Error(
            "backward: parameter {} was added to model {} or unfrozen after it was set up; change the model before setup",
            item.key(), model.number());
      }
    }
    if (session_->mesh.size(Axes::sum) == 1) continue;
    warn_once(
        warned_other_leaf_,
        fmt::format(
            "the loss depends on a tensor {} outside of all models that were set up: its gradient is not reduced over ranks",
            describe(leaf)));
  }
}

double Lite::clip(lite::Model& model, const ClipOptions& options) {
  parallel::Engine& engine = model.engine("clip_gradients");
  model.require_gradients("clip_gradients");
  parallel::GradientView gradients = engine.gradients();
  const double norm = gradients.norm();
  if (!std::isfinite(norm)) {
    if (session_->loss_scale.in_use()) return norm;  // step() skips these gradients
    throw Error(
        "clip_gradients: the gradient of {} is not finite: lower the learning rate, or inspect the batch",
        gradients.first_nonfinite());
  }
  if (const double scale = parallel::clip_scale(norm, options.max_norm); scale != 1) gradients.scale(scale);
  if (options.clip_val > 0) gradients.clamp(options.clip_val);
  return norm;
}

}  // namespace stretto
