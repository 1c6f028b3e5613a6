#include "stretto/kernels/sgd.h"

#include <algorithm>
#include <array>

#include "stretto/kernels/flush_denormals.h"
#include "stretto/kernels/update_rules.h"

namespace stretto::kernels {

namespace {

SgdRule rule_of(const SgdStep& s) {
  SgdRule rule = {.gradient = {s.grad_scale, s.weight_decay},
                  .keep = s.step == 1 ? 0 : s.momentum,
                  .take = s.step == 1 ? 1 : 1 - s.dampening,
                  .of_gradient = s.lr,
                  .of_buffer = 0};
  if (s.momentum == 0) return rule;
  rule.of_gradient = s.nesterov ? s.lr : 0;
  rule.of_buffer = s.nesterov ? s.lr * s.momentum : s.lr;
  return rule;
}

// Updates in parts whose weights are still in the cache when they are copied.
bool in_one_pass(const OptimizerRange& range, const Tensor& momentum_buffer, const SgdStep& step) {
  const SgdRule rule = rule_of(step);
  const bool has_buffer = step.momentum != 0;
  const auto part = [&](int64_t begin, int64_t end) {
    const auto of = [&](const Tensor& whole) { return whole.slice(0, begin, end); };
    const std::array<Tensor, 1> buffer = {has_buffer ? of(momentum_buffer) : Tensor()};
    if (!update(rule, of(range.master), of(range.grad), std::span(buffer).first(has_buffer ? 1 : 0)))
      return false;
    if (range.compute.defined()) of(range.compute).copy_(of(range.master));
    return true;
  };
  const int64_t n = range.master.numel(), length = range.compute.defined() ? 16'384 : n;
  for (int64_t begin = 0; begin < n; begin += length)
    if (!part(begin, std::min(n, begin + length))) return false;
  return true;
}

}  // namespace

void sgd(const OptimizerRange& range, const Tensor& momentum_buffer, const SgdStep& step) {
  at::NoGradGuard no_grad;
  const FlushDenormals flush;
  if (in_one_pass(range, momentum_buffer, step)) return;
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
