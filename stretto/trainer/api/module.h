#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <torch/nn/module.h>

#include "stretto/data/samples.h"
#include "stretto/tensor/batch.h"
#include "stretto/tensor/tensor_source.h"
#include "stretto/trainer/api/metric.h"
#include "stretto/trainer/api/optimizer_plan.h"
#include "stretto/trainer/api/step_context.h"

namespace stretto {

struct StepReport;  // step_report.h

// A training task: a Module defines the steps, the Trainer runs the loop. The constructor registers the
// model; only training_step must be overridden.
//
//   class Regression : public Module {
//    public:
//     Regression() : net_(model(std::make_shared<nn::Linear>(8, 1))) {}
//     Loss training_step(const Batch& batch, StepContext&) override {
//       return loss_of_mean(at::mse_loss(net_->forward(batch.at("x")), batch.at("y")), batch.count);
//     }
//    private:
//     std::shared_ptr<nn::Linear> net_;
//   };
class Module {
 public:
  virtual ~Module() = default;

  // Returns the loss of the batch as a sum, with its autograd graph, and the number of samples or tokens in
  // the sum.
  virtual Loss training_step(const Batch& batch, StepContext& context) = 0;

  // Called under NoGradGuard. Values passed to context.log become metrics: their means over the dataset. For
  // metrics that are not means over samples (F1, correlations, ROUGE), return predictions, from which
  // metrics() computes them: one row of values per sample, [batch.count, K] float64 in the order of the
  // batch, or bytes of each sample; else {}. Those of all ranks are gathered in dataset order, each sample
  // once. The default logs the loss of training_step; it throws ConfigError if automatic_optimization() is
  // false.
  virtual Predictions validation_step(const Batch& batch, StepContext& context);

  // Computes metrics of the whole dataset from its predictions, rows [dataset size, K]. Called on rank 0 if
  // validation_step returns any; the default then throws ConfigError.
  virtual Metrics metrics(const Predictions& predictions) const;

  // A table of the same predictions, rows [dataset size, K], for the log, such as the metrics of each class;
  // "": no table. Called on rank 0 for evaluate.by_class.
  virtual std::string table(const Predictions& /*predictions*/) const { return ""; }

  // Continues this rank's texts of evaluate.samples, for recipes whose task has TaskKind::writes_texts;
  // returns a continuation for each. Called on each rank under NoGradGuard, after an evaluation. `next_pass`:
  // empty unless forward is collective. Then call next_pass(true) before each pass through the model, and,
  // when all texts are complete, make further passes while next_pass(false) returns true: other ranks go on.
  virtual std::vector<std::string> continue_texts(const std::vector<std::string>& /*texts*/,
                                                  nn::Kernels /*kernels*/,
                                                  const std::function<bool(bool)>& /*next_pass*/) {
    return {};
  }

  // Like validation_step, for Trainer::test(). The default calls validation_step.
  virtual Predictions test_step(const Batch& batch, StepContext& context) {
    return validation_step(batch, context);
  }

  // For Trainer::predict(): the predictions of the batch, rows [batch.count, K] float64 in its order or bytes
  // of each sample. Called under NoGradGuard. The default throws ConfigError.
  virtual Predictions predict_step(const Batch& batch, StepContext& context);

  // Called on every rank after each optimizer step (with manual optimization: after the steps of each batch),
  // before callbacks. `report.step` is the number of steps done, `report.loss` the mean over the global
  // batch.
  virtual void on_train_batch_end(const StepReport& /*report*/) {}

  // If false, training_step calls backward and steps the optimizers of OptimizerPlan::several, through
  // context.manual(). The loss that it returns is only recorded, so it need not require grad.
  virtual bool automatic_optimization() const { return true; }

  // Returns the optimizer, schedule and parameter groups. `plan` is the recipe's. Called once, when training
  // begins.
  virtual OptimizerPlan configure_optimizers(OptimizerPlan plan) { return plan; }

  // Joins samples of a data::SampleDataset into one batch. Must be thread-safe.
  virtual Batch collate(std::span<const data::Sample> samples) const { return data::pad_and_stack(samples); }

  // Writes the trained model into the empty `folder`, on rank 0. `weights`: its parameters and buffers at
  // master precision, by their names in root(), which are fetched from other ranks as they are read. The
  // default writes model.safetensors.
  virtual void save(const std::filesystem::path& folder, const ListedSource& weights) const;

  // Writes the files that save() writes beside config.json and the weights, such as the tokenizer's, into
  // `folder`. Checkpoints carry them for `stretto convert`: called on rank 0, in another thread than steps.
  virtual void save_companions(const std::filesystem::path& /*folder*/) const {}

  // Reads into root() what save() wrote into `folder`. The default reads model.safetensors. Throws DataError
  // for a tensor that is missing, superfluous or of another shape.
  virtual void load(const std::filesystem::path& folder);

  // The config.json that save() writes, which checkpoints store for `stretto convert`; null if it writes
  // none.
  virtual nlohmann::json exported_config() const { return nullptr; }

  // Settings of the model that affect computation: a run can be resumed only if each value is unchanged.
  virtual nlohmann::json model_config() const { return nlohmann::json::object(); }

  // The source that parameters_from() registered; null on later calls.
  std::unique_ptr<const TensorSource> take_source() { return std::move(source_); }

  // The registered teachers, in order.
  const std::vector<std::shared_ptr<torch::nn::Module>>& teachers() const { return teachers_; }

  // The registered metrics, in order.
  const std::vector<std::shared_ptr<Metric>>& metric_objects() const { return metrics_; }

  // The registered module. Throws ConfigError if there is none.
  torch::nn::Module& root() { return *require_root(); }
  const torch::nn::Module& root() const { return *require_root(); }

 protected:
  // Registers the module to train. Throws ConfigError if called twice.
  template <class M>
  std::shared_ptr<M> model(std::shared_ptr<M> module) {
    register_root(module);
    return module;
  }

  // Registers the source of the initial values of root()'s parameters; parameters that `source` lacks are
  // unchanged. The others have no memory until a run begins: each rank then reads only the shards that it
  // owns, so that under a strategy that shards no rank needs memory for the whole model. All ranks need equal
  // sources. Throws ConfigError if called twice or with null, DataError for a tensor of another shape.
  void parameters_from(std::unique_ptr<const TensorSource> source);

  // Registers a module that steps use but that is not trained, such as the teacher of a distillation. fit()
  // moves it to the device, in the precision of the run, gives all ranks rank 0's weights, sets it to
  // evaluation mode and freezes it. It has no gradients and no optimizer state, and is neither in checkpoints
  // nor in the saved model. It must not share parameters with the model.
  template <class M>
  std::shared_ptr<M> teacher(std::shared_ptr<M> module) {
    register_teacher(module);
    return module;
  }

  // Registers a metric (standard_metrics.h), which validation_step or test_step updates.
  template <class M>
  std::shared_ptr<M> metric(std::shared_ptr<M> metric) {
    register_metric(metric);
    return metric;
  }

 private:
  void register_metric(std::shared_ptr<Metric> metric);
  void register_root(std::shared_ptr<torch::nn::Module> module);
  void register_teacher(std::shared_ptr<torch::nn::Module> module);
  const std::shared_ptr<torch::nn::Module>& require_root() const;

  std::shared_ptr<torch::nn::Module> root_;
  std::unique_ptr<const TensorSource> source_;
  std::vector<std::shared_ptr<torch::nn::Module>> teachers_;
  std::vector<std::shared_ptr<Metric>> metrics_;
};

// Reads the parameters from the registered source, for modules that are not bound to an engine.
void read_parameters(Module& module);

// Reads the weights in a file that Module::save() writes by default, by their names in root(). Throws
// DataError for a tensor that is missing, superfluous or of another shape.
void read_weights_file(Module& module, const std::filesystem::path& file);

// The samples of `dataset` as one batch, joined by module.collate() for a data::SampleDataset.
Batch make_batch(const Module& module, const data::Dataset& dataset, std::span<const int64_t> samples);

}  // namespace stretto
