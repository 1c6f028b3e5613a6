#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <torch/nn/module.h>

#include "stretto/base/tensor_layout.h"
#include "stretto/nn/row_observer.h"
#include "stretto/parallel/parameter_group.h"
#include "stretto/tensor/tensor.h"

namespace stretto::parallel {

// A trainable parameter.
struct NamedParameter {
  std::string name;  // the first name if it is tied
  // The path of the innermost block (nn/block_observer.h) that contains it; "" outside blocks and if several
  // blocks share it.
  std::string unit;
  Tensor tensor;
  TensorLayout layout;  // its position in the global tensor of this name
  bool weight_decay;
  double lr_factor = 1;
  bool is_hidden_matrix = false;  // two dimensions, within a block (nn/block_observer.h), and no lookup table
  bool sparse = false;      // a lookup table (nn::Embedding) whose rows may be reduced and stepped separately
  bool steps_rows = false;  // for lookup tables, set by the engine: the optimizer steps its rows separately
  std::shared_ptr<nn::RowHook> row_hook = nullptr;  // for sparse tables: notifies of the rows in use
};

using NamedTensorList = std::vector<std::pair<std::string, Tensor>>;

// A module's tensors by how the engine treats them. Tied parameters appear once.
struct ModuleTensors {
  std::vector<NamedParameter> trainable;  // dense floating-point parameters, in registration order
  NamedTensorList frozen;   // parameters without a gradient: whole and equal on all ranks, never reduced
  NamedTensorList buffers;  // whole; each rank's forward may write them; rank 0's are authoritative
};

// Applies `groups` to the parameters of `module`; a parameter belongs to the first matching group. Sorts the
// module's tensors, and sets requires_grad = false for parameters that a group freezes. Throws ConfigError
// naming a parameter that cannot be trained (complex, sparse layout, on another device), a frozen one that is
// cut (nn/tensor_parallel.h), or a group without parameters. A block with fewer than `min_unit_elements` is
// not a unit: its parameters belong to the enclosing block.
ModuleTensors collect_tensors(torch::nn::Module& module, const std::vector<ParameterGroup>& groups = {},
                              int64_t min_unit_elements = 0);

}  // namespace stretto::parallel
