#include "stretto/kernels/activation.h"

#include "stretto/kernels/cpu/activation_loops.h"
#include "stretto/kernels/cpu/tensor_loops.h"

namespace stretto::kernels {
namespace {

template <class T>
ActivationCall<T> activation_call(Curve curve, const Tensor& x, const Tensor& bias) {
  if (x.dim() != 2) throw ShapeError("activation: x is {}; expected rows [T, C]", describe(x));
  require_sizes("activation: bias", bias, {x.size(1)});
  ActivationCall<T> call = {};
  call.curve = curve;
  call.rows = x.size(0);
  call.width = x.size(1);
  call.in = memory_of<T>(x);
  call.bias = memory_of<T>(bias);
  return call;
}

}  // namespace

Tensor activate(Curve curve, const Tensor& x, const Tensor& bias) {
  const Tensor out = at::empty_like(x);
  with_loop_type(x.scalar_type(), [&](auto number) {
    using T = decltype(number);
    auto call = activation_call<T>(curve, x, bias);
    call.out = memory_of<T>(out);
    activation_loop(call);
  });
  return out;
}

Tensor activate_backward(Curve curve, const Tensor& grad, const Tensor& x, const Tensor& bias,
                         const Tensor& bias_sum) {
  require_sizes("activation: gradient", grad, x.sizes());
  const Tensor grad_x = at::empty_like(x);
  with_loop_type(x.scalar_type(), [&](auto number) {
    using T = decltype(number);
    auto call = activation_call<T>(curve, x, bias);
    call.grad_out = memory_of<T>(grad);
    call.grad_in = memory_of<T>(grad_x);
    call.grad_bias = memory_of<Real<T>>(bias_sum);
    activation_loop(call);
  });
  return grad_x;
}

Tensor activate_reference(Curve curve, const Tensor& x, const Tensor& bias) {
  const Tensor in = bias.defined() ? x + bias : x;
  switch (curve) {
    case Curve::gelu:
      return at::gelu(in);
    case Curve::gelu_tanh:
      return at::gelu(in, "tanh");
    case Curve::relu:
      return at::relu(in);
    case Curve::silu:
      return at::silu(in);
    case Curve::tanh:
      return at::tanh(in);
    case Curve::sigmoid:
      return at::sigmoid(in);
  }
  throw Error("activation: unknown curve {}", static_cast<int>(curve));
}

}  // namespace stretto::kernels
