#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include <torch/nn/module.h>

#include "stretto/nn/packed.h"
#include "stretto/tensor/batch.h"
#include "stretto/tensor/safetensors.h"

namespace stretto {

using Metrics = std::map<std::string, double>;

// What a step knows besides its batch.
struct StepContext {
  nn::Context forward;  // pass it to the model
  int64_t step = 0;     // optimizer steps done
  int64_t epoch = 0;
  int rank = 0;
  int world_size = 1;
};

// A training task: write the steps, the Trainer writes the loop. Models are registered in the constructor, before fit().
class Module {
 public:
  virtual ~Module() = default;

  // The batch's loss as a sum and the number of samples or tokens in it.
  virtual Loss training_step(const Batch& batch, const StepContext& context) = 0;

  // Without gradients: one row a sample of whatever metrics() needs, [batch.count, K] float64 on CPU, in the batch's
  // order. Rows of all ranks are brought together in dataset order, each sample once.
  virtual Tensor evaluation_step(const Batch& batch, const StepContext& context) = 0;

  // The metrics of a whole dataset from its rows [dataset size, K]. Runs on rank 0.
  virtual Metrics metrics(const Tensor& rows) const = 0;

  // Writes the trained model into the empty `folder`, `weights` being its parameters and buffers at master precision,
  // under the names they have in root().
  virtual void save(const std::filesystem::path& folder, const NamedTensors& weights) const = 0;

  torch::nn::Module& root() { return *root_; }
  const torch::nn::Module& root() const { return *root_; }

 protected:
  // Registers the module that is trained.
  template <class M>
  std::shared_ptr<M> model(std::shared_ptr<M> module) {
    root_ = module;
    return module;
  }

 private:
  std::shared_ptr<torch::nn::Module> root_;
};

}  // namespace stretto
