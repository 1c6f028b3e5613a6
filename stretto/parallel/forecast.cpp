#include "stretto/parallel/forecast.h"

#include "stretto/parallel/arena.h"

namespace stretto::parallel {

// The optimizer is bound to memory whose pages are never touched.
ModelSizes sizes_of(const ModuleTensors& tensors, Precision precision, optim::Optimizer& optimizer) {
  ModelSizes sizes;
  std::vector<optim::ParameterPiece> pieces;
  int64_t end = 0;
  std::string unit;
  for (const NamedParameter& parameter : tensors.trainable) {
    if (parameter.sparse && parameter.tensor.device().is_cpu()) sizes.tables += parameter.tensor.numel();
    const int64_t begin = end, size = parameter.tensor.numel();
    end += Arena::padded(parameter.layout.slot());
    if (sizes.units.empty() || parameter.unit != unit) sizes.units.push_back(0);
    unit = parameter.unit;
    sizes.units.back() += end - begin;
    pieces.push_back({.name = parameter.name,
                      .layout = parameter.layout,
                      .begin = begin,
                      .end = begin + size,
                      .weight_decay = parameter.weight_decay,
                      .lr_factor = parameter.lr_factor,
                      .is_hidden_matrix = parameter.is_hidden_matrix});
  }
  const Allocator memory = plain_memory();
  const auto buffer = [&](at::ScalarType dtype) { return memory(end, dtype, at::kCPU); };
  const at::ScalarType master = master_dtype(precision), compute = compute_dtype(precision);
  optimizer.bind({buffer(master), buffer(master), compute == master ? Tensor() : buffer(compute)},
                 std::move(pieces), memory);
  sizes.reached = sizes.tables;
  sizes.optimizer_bytes = optimizer.state_bytes();
  sizes.steps_rows = optimizer.steps_rows();
  sizes.can_shard = optimizer.placement() != optim::Placement::whole_model;
  return sizes;
}

}  // namespace stretto::parallel
