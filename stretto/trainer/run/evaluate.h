#pragma once

#include "stretto/comm/mesh.h"
#include "stretto/config/recipe.h"
#include "stretto/data/dataset.h"
#include "stretto/trainer/api/module.h"
#include "stretto/trainer/run/compute_precision.h"
#include "stretto/trainer/run/micro_batch_runner.h"

namespace stretto::trainer {

// The result of an evaluation, on rank 0.
struct Evaluation {
  Predictions predictions;  // of the dataset, rows [dataset size, K]; empty if the step returns none
  Metrics logged;           // means over the dataset, and the values of metric objects
};

struct EvaluationOptions {
  int64_t batch_size;  // samples per rank and step, at most
  at::Device device;
  nn::Kernels kernels = nn::Kernels::fast;
  std::optional<at::ScalarType> autocast = {};  // see ComputePrecision
  // Every rank must run forward equally often (EngineFacts::passes_are_collective).
  bool collective_forward = false;
  std::string validation_set = {};  // see StepContext::validation_set
  EvaluationStep step = EvaluationStep::validation;
};

// The value of evaluate.batch_size, or the training batch size if that is unset.
int64_t evaluation_batch_size(const Recipe& recipe);

// Runs validation_step, test_step or predict_step over the whole dataset, each sample exactly once over
// Axes::data. Collective.
Evaluation evaluate(Module& module, const data::Dataset& dataset, const Mesh& mesh,
                    const EvaluationOptions& options);

// Evaluates a module that is not in a training run, in training.precision. Afterwards its tensors have their
// earlier values, on `device` in fp32 or fp64. `place`: the module in messages, its folder. Throws DataError
// unless all parameters are finite, or checkpoint.allow_nonfinite is set. Collective.
Evaluation evaluate_alone(const Recipe& recipe, const std::string& place, Module& module,
                          const data::Dataset& dataset, const Mesh& mesh, at::Device device,
                          EvaluationStep step);

// All metrics of an evaluation: those computed from its predictions, and the logged values.
Metrics measure(const Module& module, const Evaluation& evaluation);

// Like measure(), on every rank: rank 0 of the world computes the metrics and broadcasts them. Collective.
Metrics measure_everywhere(const Module& module, const Evaluation& evaluation, const Mesh& mesh);

}  // namespace stretto::trainer
