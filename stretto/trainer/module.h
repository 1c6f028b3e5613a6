#pragma once

#include <filesystem>
#include <memory>

#include <nlohmann/json.hpp>

#include <torch/nn/module.h>

#include "stretto/data/samples.h"
#include "stretto/tensor/batch.h"
#include "stretto/tensor/safetensors.h"
#include "stretto/trainer/optimizer_plan.h"
#include "stretto/trainer/step_context.h"

namespace stretto {

// A training task: write the steps, the Trainer writes the loop. The model is registered in the constructor, and
// training_step is all that must be written besides.
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

  // The batch's loss as a sum, with its graph, and the number of samples or tokens in it.
  virtual Loss training_step(const Batch& batch, StepContext& context) = 0;

  // Without gradients. What context.log is told becomes a metric: the mean over the dataset. A metric that is no mean of
  // its parts (F1, a correlation) is worked out by metrics() from rows: one row a sample of whatever it needs,
  // [batch.count, K] float64 in the batch's order; an undefined tensor where there are none. Rows of all ranks are brought
  // together in dataset order, each sample once. By default the training_step's loss.
  virtual Tensor validation_step(const Batch& batch, StepContext& context);

  // The metrics of a whole dataset from its rows [dataset size, K]. Runs on rank 0, where validation_step gives rows.
  virtual Metrics metrics(const Tensor& rows) const;

  // How to train: `plan` is what the recipe says; change it, or return another. Called once, when training begins.
  virtual OptimizerPlan configure_optimizers(OptimizerPlan plan) { return plan; }

  // Samples of a data::SampleDataset as one batch: the tensors that the steps read. Thread-safe.
  virtual Batch collate(std::span<const data::Sample> samples) const { return data::pad_and_stack(samples); }

  // Writes the trained model into the empty `folder`, `weights` being its parameters and buffers at master precision,
  // under the names they have in root(). By default model.safetensors.
  virtual void save(const std::filesystem::path& folder, const NamedTensors& weights) const;

  // The configuration of the model by name, as far as it computes: a run is resumed only where each value is the same.
  virtual nlohmann::json model_config() const { return nlohmann::json::object(); }

  // The module that is trained. Throws ConfigError where none was registered.
  torch::nn::Module& root() { return *require_root(); }
  const torch::nn::Module& root() const { return *require_root(); }

 protected:
  // Registers the module that is trained. Throws ConfigError for a second one.
  template <class M>
  std::shared_ptr<M> model(std::shared_ptr<M> module) {
    register_root(module);
    return module;
  }

 private:
  void register_root(std::shared_ptr<torch::nn::Module> module);
  const std::shared_ptr<torch::nn::Module>& require_root() const;

  std::shared_ptr<torch::nn::Module> root_;
};

// The samples of `dataset` as `module` wants them.
Batch make_batch(const Module& module, const data::Dataset& dataset, std::span<const int64_t> samples);

}  // namespace stretto
