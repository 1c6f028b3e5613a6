#include "stretto/kernels/update_rules.h"

#include "stretto/kernels/cpu/tensor_loops.h"
#include "stretto/kernels/cpu/update_rules_loops.h"

namespace stretto::kernels {
namespace {

// Calls `loop` with the memory of parameters, gradients and state, if there are loops for them.
template <class Loop>
bool on_numbers(const Tensor& master, const Tensor& grad, std::span<const Tensor> state, const Loop& loop) {
  if (!master.device().is_cpu()) return false;
  const auto call = [&]<class R>(R) {
    const auto at = [&](size_t i) { return i < state.size() ? memory_of<R>(state[i]) : nullptr; };
    loop(memory_of<R>(master), memory_of<R>(grad), at(0), at(1), master.numel());
    return true;
  };
  if (master.scalar_type() == at::kFloat) return call(float{});
  if (master.scalar_type() == at::kDouble) return call(double{});
  return false;
}

}  // namespace

bool update(const AdamRule& rule, const Tensor& master, const Tensor& grad, std::span<const Tensor> state) {
  return on_numbers(master, grad, state, [&](auto* p, auto* g, auto* m, auto* v, int64_t n) {
    adam_rule_loop(p, g, m, v, n, rule);
  });
}

bool update(const AdamaxRule& rule, const Tensor& master, const Tensor& grad, std::span<const Tensor> state) {
  return on_numbers(master, grad, state, [&](auto* p, auto* g, auto* m, auto* u, int64_t n) {
    adamax_rule_loop(p, g, m, u, n, rule);
  });
}

bool update(const RmspropRule& rule, const Tensor& master, const Tensor& grad,
            std::span<const Tensor> state) {
  return on_numbers(master, grad, state, [&](auto* p, auto* g, auto* v, auto* b, int64_t n) {
    b == nullptr ? rmsprop_rule_loop(p, g, v, n, rule) : rmsprop_momentum_loop(p, g, v, b, n, rule);
  });
}

bool update(const AdagradRule& rule, const Tensor& master, const Tensor& grad,
            std::span<const Tensor> state) {
  return on_numbers(master, grad, state, [&](auto* p, auto* g, auto* s, auto*, int64_t n) {
    adagrad_rule_loop(p, g, s, n, rule);
  });
}

bool update(const AdadeltaRule& rule, const Tensor& master, const Tensor& grad,
            std::span<const Tensor> state) {
  return on_numbers(master, grad, state, [&](auto* p, auto* g, auto* v, auto* a, int64_t n) {
    adadelta_rule_loop(p, g, v, a, n, rule);
  });
}

bool update(const AsgdRule& rule, const Tensor& master, const Tensor& grad, std::span<const Tensor> state) {
  return on_numbers(master, grad, state,
                    [&](auto* p, auto* g, auto* a, auto*, int64_t n) { asgd_rule_loop(p, g, a, n, rule); });
}

bool update(const RpropRule& rule, const Tensor& master, const Tensor& grad, std::span<const Tensor> state) {
  return on_numbers(master, grad, state, [&](auto* p, auto* g, auto* before, auto* s, int64_t n) {
    rprop_rule_loop(p, g, before, s, n, rule);
  });
}

bool update(const SgdRule& rule, const Tensor& master, const Tensor& grad, std::span<const Tensor> state) {
  return on_numbers(master, grad, state, [&](auto* p, auto* g, auto* b, auto*, int64_t n) {
    b == nullptr ? sgd_rule_loop(p, g, n, rule) : sgd_momentum_loop(p, g, b, n, rule);
  });
}

}  // namespace stretto::kernels
