#pragma once

#include <memory>
#include <string>
#include <vector>

#include <torch/nn/module.h>

#include "stretto/nn/row_observer.h"
#include "stretto/tensor/tensor.h"

namespace stretto {

// A parameter as the arena sees it.
struct NamedParameter {
  std::string name;  // its first, where it is tied
  std::string unit;  // path of the innermost block (nn/block_observer.h) that holds it; "" outside of blocks
  Tensor tensor;
  bool decay;  // weight decay applies: no bias, no weight of a norm
  double lr_factor = 1;
  bool sparse = false;  // a table whose rows may be reduced and stepped one by one (nn::Embedding)
  std::shared_ptr<nn::RowHook> row_hook = nullptr;  // of a sparse table: notifies of the rows in use
};

// A module's tensors by how data parallelism treats them. Tied parameters appear once.
struct ModuleTensors {
  std::vector<NamedParameter> trained;  // dense float parameters with gradients, in registration order
  std::vector<std::pair<std::string, Tensor>>
      constant;  // frozen parameters and buffers: broadcast, never reduced
};

// Throws ConfigError by name for parameters that cannot be trained (complex, sparse, on several devices).
ModuleTensors collect_tensors(const torch::nn::Module& module);

}  // namespace stretto
