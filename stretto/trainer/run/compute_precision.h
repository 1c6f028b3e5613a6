#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <torch/nn/module.h>

#include "stretto/tensor/autocast.h"

namespace stretto::trainer {

// How a module's forward computes in the precision of a run.
struct ComputePrecision {
  // the dtype of the parameters that forward reads; bf16 and fp16: a copy of fp32 master weights
  Precision parameters;
  std::optional<at::ScalarType> autocast;  // the dtype to which torch's operators cast their inputs
};

// Layers of stretto::nn compute in the dtype of their parameters: bf16 and fp16 give them a copy. Modules
// without such layers keep fp32 parameters and compute under autocast; modules with both kinds have both.
ComputePrecision compute_precision(const torch::nn::Module& module, Precision precision);

// The precision as text for the start of a run: "fp32", "bf16 (autocast)"; mentions if the processor lacks
// the instructions. `precision`: training.precision.
std::string describe_precision(Precision precision, const ComputePrecision& compute, at::Device device);

// During its lifetime, the parameters and buffers of `module` are copies in the dtype that forward reads in
// training.
class ComputeCopies {
 public:
  ComputeCopies(torch::nn::Module& module, const ComputePrecision& compute);
  ~ComputeCopies();
  ComputeCopies(const ComputeCopies&) = delete;
  ComputeCopies& operator=(const ComputeCopies&) = delete;

 private:
  std::vector<std::pair<Tensor, Tensor>> originals_;  // tensors of the module, and their original data
};

}  // namespace stretto::trainer
