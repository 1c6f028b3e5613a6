#include <torch/csrc/autograd/custom_function.h>

#include "stretto/base/error.h"
#include "stretto/kernels/activation.h"
#include "stretto/kernels/tensor_loops.h"
#include "stretto/nn/functional.h"
#include "stretto/nn/matmul.h"
#include "stretto/nn/parameter_gradient.h"

namespace stretto::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

void check_fits(const Tensor& x, const Tensor& weight) {
  if (x.dim() == 2 && x.size(1) == weight.size(1)) return;
  throw ShapeError("linear: input {} does not fit weight {}; [T, {}] is needed", describe(x),
                   describe(weight), weight.size(1));
}

// Several linear maps of one input. `parameters` are weight and bias of each.
struct LinearsFunction : torch::autograd::Function<LinearsFunction> {
  static variable_list forward(AutogradContext* context, const Tensor& x, at::TensorList parameters) {
    variable_list saved = {x};
    saved.insert(saved.end(), parameters.begin(), parameters.end());
    context->save_for_backward(saved);
    const Tensor wide_x = operand(x);
    variable_list outputs;
    for (size_t i = 0; i < parameters.size(); i += 2) {
      const Tensor &weight = parameters[i], &bias = parameters[i + 1];
      const Tensor y = at::linear(wide_x, operand(weight), bias.defined() ? operand(bias) : bias);
      outputs.push_back(y.to(weight.scalar_type()));
    }
    return outputs;
  }

  static variable_list backward(AutogradContext* context, const variable_list& outputs) {
    const auto saved = context->get_saved_variables();
    const Tensor wide_x = operand(saved[0]);
    variable_list result(saved.size());
    Tensor sum;
    for (size_t map = 0; map < outputs.size(); ++map) {
      if (!outputs[map].defined()) continue;
      const size_t at_weight = 1 + 2 * map, at_bias = at_weight + 1;
      const Tensor &weight = saved[at_weight], &bias = saved[at_bias];
      const Tensor grad = outputs[map].contiguous(), wide_grad = operand(grad);
      if (context->needs_input_grad(0)) {
        if (sum.defined()) {
          add_input_gradient(sum, wide_grad, weight);
        } else {
          sum = at::mm(wide_grad, operand(weight));
        }
      }
      if (context->needs_input_grad(at_weight))
        result[at_weight] = weight_gradient(weight, wide_grad, wide_x);
      if (bias.defined() && context->needs_input_grad(at_bias)) result[at_bias] = bias_gradient(bias, grad);
    }
    if (sum.defined()) result[0] = sum.to(saved[0].scalar_type());
    return result;
  }
};

// curve(x W^T + b), keeping only what went into the curve.
struct LinearActivationFunction : torch::autograd::Function<LinearActivationFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight, const Tensor& bias,
                        kernels::Curve curve) {
    const Tensor before = product(operand(x), weight);
    context->save_for_backward({x, weight, bias, before});
    context->saved_data["curve"] = static_cast<int64_t>(curve);
    return kernels::activate(curve, before, bias);
  }

  static variable_list backward(AutogradContext* context, const variable_list& outputs) {
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1], &bias = saved[2];
    const auto curve = static_cast<kernels::Curve>(context->saved_data["curve"].toInt());
    const ParameterGradient bias_sum(bias, kernels::computed_type(x.scalar_type()),
                                     context->needs_input_grad(2));
    const Tensor grad =
        operand(kernels::activate_backward(curve, outputs[0].contiguous(), saved[3], bias, bias_sum.sum()));
    variable_list result(4);
    if (context->needs_input_grad(0)) result[0] = input_gradient(grad, weight);
    if (context->needs_input_grad(1)) result[1] = weight_gradient(weight, grad, operand(x));
    result[2] = bias_sum.result();
    return result;
  }
};

}  // namespace

Tensor linear(const Tensor& x, const Affine& map) {
  check_fits(x, map.weight);
  return LinearsFunction::apply(x, at::TensorList({map.weight, map.bias}))[0];
}

std::vector<Tensor> linears(const Tensor& x, const std::vector<Affine>& maps) {
  std::vector<Tensor> parameters;
  for (const Affine& map : maps) {
    check_fits(x, map.weight);
    parameters.push_back(map.weight);
    parameters.push_back(map.bias);
  }
  return LinearsFunction::apply(x, at::TensorList(parameters));
}

Tensor linear_activation(const Tensor& x, const Affine& map, Activation activation, const Context& context) {
  check_fits(x, map.weight);
  if (!context.fast(x)) return kernels::activate_reference(activation, linear(x, map), {});
  return LinearActivationFunction::apply(x, map.weight, map.bias, activation);
}

}  // namespace stretto::nn
