#include "stretto/kernels/sgd.h"

#include "stretto/kernels/flush_denormals.h"

namespace stretto::kernels {

void sgd(const OptimizerRange& range, const Tensor& momentum_buffer, const SgdStep& step) {
  at::NoGradGuard no_grad;
  const FlushDenormals flush;
  Tensor grad = range.grad, master = range.master;
  grad.mul_(step.grad_scale);
  if (step.weight_decay != 0) grad.add_(master, step.weight_decay);
  if (step.momentum == 0) {
    master.add_(grad, -step.lr);
  } else {
    const Tensor& buffer = momentum_buffer;
    if (step.step == 1) {
      buffer.copy_(grad);
    } else {
      buffer.mul_(step.momentum).add_(grad, 1 - step.dampening);
    }
    if (step.nesterov) {
      master.add_(grad.add_(buffer, step.momentum), -step.lr);
    } else {
      master.add_(buffer, -step.lr);
    }
  }
  grad.zero_();
  write_compute_copy(range);
}

}  // namespace stretto::kernels
