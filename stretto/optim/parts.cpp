#include "stretto/optim/parts.h"

#include <algorithm>

#include "stretto/kernels/flush_denormals.h"
#include "stretto/kernels/update_rules.h"

namespace stretto::optim {

kernels::ScaledGradient PartwiseOptimizer::Part::gradient(double grad_scale, bool decoupled) const {
  return {grad_scale, decoupled ? 0 : weight_decay};
}

void PartwiseOptimizer::step_range(const Range& range, const StepRates& rates, double grad_scale,
                                   int64_t step) {
  constexpr int64_t cached_elements = 32'768;
  const at::NoGradGuard no_grad;
  const kernels::FlushDenormals flush;
  const int64_t elements = range.buffers.master.numel();
  const auto part_of = [&](int64_t begin, int64_t end) {
    const Buffers buffers = slice(range.buffers, begin, end);
    Part part = {.master = buffers.master,
                 .grad = buffers.grad,
                 .compute = buffers.compute,
                 .state = {},
                 .weight_decay = range.weight_decay ? weight_decay_ : 0,
                 .lr = rates.lr,
                 .lr_factor = range.lr_factor,
                 .momentum = rates.momentum,
                 .step = step};
    for (const Tensor& state : range.state) part.state.push_back(state.slice(0, begin, end));
    return part;
  };
  const bool copies = range.buffers.compute.defined(), on_cpu = range.buffers.master.device().is_cpu();
  if (!copies && step_in_one_pass(part_of(0, elements), grad_scale)) return;
  const int64_t length = on_cpu ? cached_elements : elements;
  for (int64_t begin = 0; begin < elements; begin += length) {
    const Part part = part_of(begin, std::min(elements, begin + length));
    if (!step_in_one_pass(part, grad_scale)) {
      Tensor(part.grad).mul_(grad_scale);
      step_part(part);
      Tensor(part.grad).zero_();
    }
    if (copies) Tensor(part.compute).copy_(part.master);
  }
}

}  // namespace stretto::optim
