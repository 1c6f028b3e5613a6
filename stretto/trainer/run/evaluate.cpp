#include "stretto/trainer/run/evaluate.h"

#include <cstring>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/progress_bar.h"
#include "stretto/data/global_batches.h"
#include "stretto/tensor/finite.h"
#include "stretto/trainer/run/matmul_libraries.h"

namespace stretto {
namespace {

// One rank's rows as bytes: count, width, sample indices, values.
std::string encode_rows(const std::vector<int64_t>& samples, const Tensor& rows) {
  const int64_t header[2] = {std::ssize(samples), rows.defined() ? rows.size(1) : 0};
  std::string bytes(reinterpret_cast<const char*>(header), sizeof header);
  bytes.append(reinterpret_cast<const char*>(samples.data()), samples.size() * sizeof(int64_t));
  if (rows.defined()) bytes.append(static_cast<const char*>(rows.const_data_ptr()), rows.nbytes());
  return bytes;
}

// Copies a rank's rows to their positions in `all`, which is allocated by the first rank with rows.
void place_rows(const std::string& bytes, int64_t dataset_size, Tensor& all) {
  int64_t header[2];
  std::memcpy(header, bytes.data(), sizeof header);
  const auto [count, width] = header;
  if (count == 0) return;
  if (!all.defined()) all = at::full({dataset_size, width}, std::nan(""), at::kDouble);
  if (all.size(1) != width)
    throw ShapeError(
        "validation_step returned rows of {} and of {} values; expected the same number in every row",
        all.size(1), width);
  const char* place = bytes.data() + sizeof header;
  const Tensor samples = at::empty({count}, at::kLong), rows = at::empty({count, width}, at::kDouble);
  std::memcpy(samples.data_ptr(), place, samples.nbytes());
  std::memcpy(rows.data_ptr(), place + samples.nbytes(), rows.nbytes());
  all.index_copy_(0, samples, rows);
}

const char* name_of(EvaluationStep step) {
  if (step == EvaluationStep::predict) return "predict_step";
  return step == EvaluationStep::test ? "test_step" : "validation_step";
}

Tensor call(Module& module, EvaluationStep step, const Batch& batch, StepContext& context) {
  if (step == EvaluationStep::predict) return module.predict_step(batch, context);
  return step == EvaluationStep::test ? module.test_step(batch, context)
                                      : module.validation_step(batch, context);
}

// Buffers are not checked: infinity is common in them, for example in attention masks.
void require_finite_parameters(const std::string& place, const Module& module) {
  for (const auto& parameter : module.root().named_parameters()) {
    if (is_finite(parameter.value())) continue;
    throw DataError(
        "{}: {} holds NaN or infinity, so results would be meaningless; train the model again, or evaluate it anyway with --allow-nonfinite (checkpoint.allow_nonfinite: true)",
        place, parameter.key());
  }
}

}  // namespace

int64_t evaluation_batch_size(const Recipe& recipe) {
  return recipe.evaluate.batch_size.value_or(recipe.training.batch_size.value_or(32));
}

Evaluation evaluate(Module& module, const data::Dataset& dataset, const Mesh& mesh,
                    const EvaluationOptions& options) {
  at::NoGradGuard no_grad;
  std::optional<Autocast> autocast;
  if (options.autocast) autocast.emplace(options.device.type(), *options.autocast);
  module.root().eval();
  Group& group = mesh.group(Axes::data);
  const data::GlobalBatch all =
      data::evaluation_batch(dataset, group.size(), group.rank(), options.batch_size);
  LoggedWindows logged;
  StepContext context(mesh, logged, all.reaches_all_ranks(group.size()));
  context.forward.kernels = options.kernels;
  context.validation_set = options.validation_set;
  std::vector<int64_t> samples;
  std::vector<Tensor> parts;
  LoggedWindows ignored;
  StepContext idle_context(mesh, ignored, /*all_ranks_step=*/false);
  idle_context.forward.kernels = options.kernels;
  idle_context.batch_count = 1;
  idle_context.validation_set = options.validation_set;
  const std::vector<int64_t> stand_in(all.samples.begin(), all.samples.begin() + !all.samples.empty());
  EvaluatedMetrics objects(module.metric_objects());
  ProgressBar bar("evaluating", std::ssize(all.micro_batches), "batches");
  for (const auto& micro_batch : all.micro_batches) {
    bar.add();
    if (micro_batch.empty()) {
      if (!options.collective_forward) continue;
      objects.count(false);
      call(module, options.step, make_batch(module, dataset, stand_in).to(options.device), idle_context);
      objects.count(true);
      continue;
    }
    const Batch batch = make_batch(module, dataset, micro_batch).to(options.device);
    context.batch_count = batch.count;
    const Tensor rows = call(module, options.step, batch, context);
    if (!rows.defined()) continue;
    if (rows.dim() != 2 || rows.size(0) != batch.count || rows.scalar_type() != at::kDouble) {
      throw ShapeError("{} returned {}; expected [{}, K] Double, one row per sample", name_of(options.step),
                       describe(rows), batch.count);
    }
    samples.insert(samples.end(), micro_batch.begin(), micro_batch.end());
    parts.push_back(rows.contiguous());
  }
  module.root().train();
  const auto gathered =
      group.all_gather_bytes(encode_rows(samples, parts.empty() ? Tensor() : at::cat(parts)));
  logged.record.collect(mesh);
  objects.collect(mesh);
  Evaluation evaluation;
  if (group.rank() != 0) return evaluation;
  for (const std::string& bytes : gathered) place_rows(bytes, dataset.size(), evaluation.rows);
  evaluation.logged = logged.record.take();
  if (options.step != EvaluationStep::predict) objects.add_values(evaluation.logged);
  return evaluation;
}

Evaluation evaluate_alone(const Recipe& recipe, const std::string& place, Module& module,
                          const data::Dataset& dataset, const Mesh& mesh, at::Device device,
                          EvaluationStep step) {
  if (!recipe.checkpoint.allow_nonfinite) require_finite_parameters(place, module);
  const Precision precision = recipe.training.precision;
  module.root().to(device, master_dtype(precision));
  const ComputePrecision compute = compute_precision(module.root(), precision);
  const ComputeCopies copies(module.root(), compute);
  log::info("precision  {}", describe_precision(precision, compute, device));
  const auto products = choose_matmul_libraries(recipe, module.root(), dataset, evaluation_batch_size(recipe),
                                                compute.parameters, mesh, device);
  if (products) log::info("products   {}", products->describe());
  return evaluate(module, dataset, mesh,
                  {.batch_size = evaluation_batch_size(recipe),
                   .device = device,
                   .kernels = nn::parse_kernels(recipe.training.kernels),
                   .autocast = compute.autocast,
                   .step = step});
}

Metrics measure(const Module& module, const Evaluation& evaluation) {
  Metrics metrics = evaluation.rows.defined() ? module.metrics(evaluation.rows) : Metrics();
  metrics.insert(evaluation.logged.begin(), evaluation.logged.end());
  return metrics;
}

Metrics measure_everywhere(const Module& module, const Evaluation& evaluation, const Mesh& mesh) {
  Group& world = mesh.world();
  std::vector<uint8_t> bytes;
  if (world.rank() == 0)
    bytes = nlohmann::json::to_cbor(measure(module, evaluation));  // keeps NaN, unlike text
  return nlohmann::json::from_cbor(world.broadcast_bytes({bytes.begin(), bytes.end()}, 0)).get<Metrics>();
}

}  // namespace stretto
