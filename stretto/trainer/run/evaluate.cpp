#include "stretto/trainer/run/evaluate.h"

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/progress_bar.h"
#include "stretto/data/evaluation_batches.h"
#include "stretto/tensor/finite.h"
#include "stretto/trainer/run/gathered_predictions.h"
#include "stretto/trainer/run/matmul_libraries.h"

namespace stretto::trainer {
namespace {

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
  module.root().eval();
  Group& group = mesh.group(Axes::data);
  data::EvaluationBatches batches(dataset, group.size(), group.rank(), options.batch_size);
  MicroBatchRunner runner(module, dataset, mesh,
                          {.device = options.device,
                           .autocast = options.autocast,
                           .collective_forward = options.collective_forward});
  PassInfo info = {.validation_set = options.validation_set};
  info.forward.kernels = options.kernels;
  LoggedWindows logged;
  EvaluatedMetrics objects(module.metric_objects());
  ProgressBar bar("evaluating", batches.micro_batches(), "batches");
  GatheredPredictions predictions;
  const auto keep = [&](std::span<const int64_t> samples, Predictions of_batch) {
    bar.add();
    predictions.add(samples, std::move(of_batch));
  };
  while (const auto batch = batches.next())
    runner.evaluate(*batch, info, options.step, objects, logged, keep);
  module.root().train();
  Evaluation evaluation = {.predictions = predictions.gather(group, dataset.size()), .logged = {}};
  logged.record.collect(mesh);
  objects.collect(mesh);
  if (group.rank() != 0) return evaluation;
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
  if (products) log::info("matmul     {}", products->describe());
  return evaluate(module, dataset, mesh,
                  {.batch_size = evaluation_batch_size(recipe),
                   .device = device,
                   .kernels = nn::parse_kernels(recipe.training.kernels),
                   .autocast = compute.autocast,
                   .step = step});
}

Metrics measure(const Module& module, const Evaluation& evaluation) {
  Metrics metrics = evaluation.predictions.empty() ? Metrics() : module.metrics(evaluation.predictions);
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

}  // namespace stretto::trainer
