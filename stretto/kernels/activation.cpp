#include "stretto/kernels/activation.h"

#include "stretto/kernels/cpu/activation_loops.h"
#include "stretto/kernels/cpu/tensor_loops.h"

namespace stretto::kernels {
namespace {

template <class T>
ActivationCall<T> activation_call(Activation activation, const Tensor& x, const Tensor& bias,
                                  const Tensor& factor) {
  if (x.dim() != 2) throw ShapeError("activation: x is {}; expected rows [T, C]", describe(x));
  require_sizes("activation: bias", bias, {x.size(1)});
  require_sizes("activation: factor", factor, x.sizes());
  ActivationCall<T> call = {};
  call.activation = activation;
  call.rows = x.size(0);
  call.width = x.size(1);
  call.in = memory_of<T>(x);
  call.bias = memory_of<T>(bias);
  call.factor = memory_of<T>(factor);
  return call;
}

}  // namespace

Tensor activate(Activation activation, const Tensor& x, const Tensor& bias, const Tensor& factor) {
  if (is_fp16(x))
    return activate(activation, widen_fp16(x), widen_fp16(bias), widen_fp16(factor)).to(at::kHalf);
  const Tensor out = at::empty_like(x);
  with_loop_type(x.scalar_type(), [&](auto number) {
    using T = decltype(number);
    auto call = activation_call<T>(activation, x, bias, factor);
    call.out = memory_of<T>(out);
    activation_loop(call);
  });
  return out;
}

void activate_backward(Activation activation, const Tensor& grad, const Tensor& x, const Tensor& bias,
                       const Tensor& factor, const Tensor& bias_sum) {
  if (is_fp16(x)) {
    const Tensor wide_grad = widen_fp16(grad), wide_x = widen_fp16(x), wide_factor = widen_fp16(factor);
    activate_backward(activation, wide_grad, wide_x, widen_fp16(bias), wide_factor, bias_sum);
    Tensor(grad).copy_(wide_grad);
    Tensor(x).copy_(wide_x);
    if (factor.defined()) Tensor(factor).copy_(wide_factor);
    return;
  }
  require_sizes("activation: gradient", grad, x.sizes());
  with_loop_type(x.scalar_type(), [&](auto number) {
    using T = decltype(number);
    auto call = activation_call<T>(activation, x, bias, factor);
    call.out = memory_of<T>(x);
    call.grad = memory_of<T>(grad);
    call.grad_factor = memory_of<T>(factor);
    call.grad_bias = memory_of<Real<T>>(bias_sum);
    activation_loop(call);
  });
}

namespace {

Tensor activation_reference(Activation activation, const Tensor& in) {
  switch (activation) {
    case Activation::gelu:
      return at::gelu(in);
    case Activation::gelu_tanh:
      return at::gelu(in, "tanh");
    case Activation::relu:
      return at::relu(in);
    case Activation::silu:
      return at::silu(in);
    case Activation::tanh:
      return at::tanh(in);
    case Activation::sigmoid:
      return at::sigmoid(in);
  }
  throw Error("activation: unknown function {}", static_cast<int>(activation));
}

}  // namespace

Tensor activate_reference(Activation activation, const Tensor& x, const Tensor& bias, const Tensor& factor) {
  const Tensor out = activation_reference(activation, bias.defined() ? x + bias : x);
  return factor.defined() ? out * factor : out;
}

}  // namespace stretto::kernels
