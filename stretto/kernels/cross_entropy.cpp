#include "stretto/kernels/cross_entropy.h"

#include "stretto/kernels/cpu/cross_entropy_loops.h"
#include "stretto/kernels/cpu/tensor_loops.h"

namespace stretto::kernels {
namespace {

template <class T>
CrossEntropyCall<T> cross_entropy_call(const Tensor& logits, const Tensor& labels, int64_t ignored,
                                       const Tensor& normaliser = {}) {
  CrossEntropyCall<T> call = {};
  call.rows = logits.size(0);
  call.classes = logits.size(1);
  call.logits = memory_of<T>(logits);
  call.labels = memory_of<int64_t>(labels);
  call.ignored = ignored;
  if (normaliser.defined()) call.normaliser = memory_of<Real<T>>(normaliser);
  return call;
}

}  // namespace

CrossEntropy cross_entropy(const Tensor& logits, const Tensor& labels, int64_t ignored) {
  if (is_fp16(logits)) return cross_entropy(widen_fp16(logits), labels, ignored);
  const auto type = computed_type(logits.scalar_type());
  const Tensor normaliser = at::empty({logits.size(0), 2}, type);
  double sum = 0;
  with_loop_type(logits.scalar_type(), [&](auto number) {
    using T = decltype(number);
    auto call = cross_entropy_call<T>(logits, labels, ignored, normaliser);
    call.sum = &sum;
    cross_entropy_loop(call);
  });
  return {at::scalar_tensor(sum, type), normaliser};
}

void cross_entropy_backward(double grad_sum, const Tensor& logits, const Tensor& labels, int64_t ignored,
                            const Tensor& normaliser, const Tensor& grad) {
  if (is_fp16(logits)) {
    const Tensor wide = widen_fp16(logits);
    cross_entropy_backward(grad_sum, wide, labels, ignored, normaliser, wide);
    Tensor(grad).copy_(wide);
    return;
  }
  require_sizes("cross_entropy: gradient", grad, logits.sizes());
  with_loop_type(logits.scalar_type(), [&](auto number) {
    using T = decltype(number);
    auto call = cross_entropy_call<T>(logits, labels, ignored, normaliser);
    call.grad_sum = grad_sum;
    call.grad_logits = memory_of<T>(grad);
    cross_entropy_loop(call);
  });
}

double cross_entropy_with_gradient(const Tensor& logits, const Tensor& labels, int64_t ignored) {
  if (is_fp16(logits)) {
    const Tensor wide = widen_fp16(logits);
    const double sum = cross_entropy_with_gradient(wide, labels, ignored);
    Tensor(logits).copy_(wide);
    return sum;
  }
  const Tensor powers = at::empty({logits.size(1)}, computed_type(logits.scalar_type()));
  double sum = 0;
  with_loop_type(logits.scalar_type(), [&](auto number) {
    using T = decltype(number);
    auto call = cross_entropy_call<T>(logits, labels, ignored);
    call.sum = &sum;
    call.grad_sum = 1;
    call.grad_logits = memory_of<T>(logits);
    call.powers = memory_of<Real<T>>(powers);
    cross_entropy_loop(call);
  });
  return sum;
}

Tensor cross_entropy_reference(const Tensor& logits, const Tensor& labels, int64_t ignored) {
  return at::cross_entropy_loss(logits.to(computed_type(logits.scalar_type())), labels, {},
                                at::Reduction::Sum, ignored);
}

}  // namespace stretto::kernels
