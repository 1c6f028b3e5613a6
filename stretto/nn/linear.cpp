#include <torch/csrc/autograd/custom_function.h>

#include "stretto/base/error.h"
#include "stretto/nn/functional.h"
#include "stretto/nn/matmul.h"
#include "stretto/nn/tensor_parallel.h"

namespace stretto::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

void check_fits(const Tensor& x, const Affine& map) {
  const int64_t in = map.weight.size(map.transposed ? 0 : 1);
  if (x.dim() == 2 && x.size(1) == in) return;
  throw ShapeError("linear: input {} does not fit weight {}; [T, {}] is needed", describe(x),
                   describe(map.weight), in);
}

// Several linear maps of one input. `parameters` are the weight and, if the map is `biased`, the bias of each
// map: autograd accepts no undefined tensors.
struct LinearsFunction : torch::autograd::Function<LinearsFunction> {
  static variable_list forward(AutogradContext* context, const Tensor& x, at::TensorList parameters,
                               const c10::List<bool>& biased, const c10::List<bool>& transposed) {
    variable_list saved = {x};
    saved.insert(saved.end(), parameters.begin(), parameters.end());
    context->save_for_backward(saved);
    context->saved_data["biased"] = biased;
    context->saved_data["transposed"] = transposed;
    const Tensor wide_x = operand(x);
    variable_list outputs;
    size_t next = 0;
    for (size_t map = 0; map < biased.size(); ++map) {
      const Tensor weight = oriented(parameters[next++], transposed[map]);
      outputs.push_back(product(wide_x, weight, biased[map] ? parameters[next++] : Tensor()));
    }
    return outputs;
  }

  static variable_list backward(AutogradContext* context, const variable_list& outputs) {
    const auto saved = context->get_saved_variables();
    const auto biased = context->saved_data["biased"].toBoolList();
    const auto transposed = context->saved_data["transposed"].toBoolList();
    const Tensor wide_x = operand(saved[0]);
    variable_list result(saved.size() + 2);
    Tensor sum;
    size_t next = 1;
    for (size_t map = 0; map < outputs.size(); ++map) {
      const size_t at_weight = next++, at_bias = biased[map] ? next++ : 0;
      if (!outputs[map].defined()) continue;
      const Tensor& weight = saved[at_weight];
      const Tensor grad = outputs[map].contiguous(), wide_grad = operand(grad);
      if (context->needs_input_grad(0)) {
        if (sum.defined()) {
          add_input_gradient(sum, wide_grad, oriented(weight, transposed[map]));
        } else {
          sum = input_gradient(wide_grad, oriented(weight, transposed[map]));
        }
      }
      if (context->needs_input_grad(at_weight))
        result[at_weight] = weight_gradient(weight, wide_grad, wide_x, transposed[map]);
      if (at_bias > 0 && context->needs_input_grad(at_bias))
        result[at_bias] = bias_gradient(saved[at_bias], grad);
    }
    if (sum.defined()) result[0] = sum.to(saved[0].scalar_type());
    return result;
  }
};

}  // namespace

Tensor linear(const Tensor& x, const Affine& map) { return linears(x, {map})[0]; }

std::vector<Tensor> linears(const Tensor& x, const std::vector<Affine>& maps) {
  std::vector<Tensor> parameters;
  c10::List<bool> biased, transposed;
  for (const Affine& map : maps) {
    check_fits(x, map);
    parameters.push_back(map.weight);
    const bool adds_bias = map.bias.defined() && map.inputs_over == nullptr;
    biased.push_back(adds_bias);
    transposed.push_back(map.transposed);
    if (adds_bias) parameters.push_back(map.bias);
  }
  Group* const divided = maps.at(0).outputs_over;
  std::vector<Tensor> results = LinearsFunction::apply(divided != nullptr ? to_parts(x, *divided) : x,
                                                       at::TensorList(parameters), biased, transposed);
  for (size_t map = 0; map < maps.size(); ++map) {
    const auto& [weight, bias, is_transposed, outputs_over, inputs_over] = maps[map];
    if (inputs_over == nullptr) continue;
    results[map] = sum_of_parts(results[map], *inputs_over);
    if (bias.defined()) results[map] = results[map] + bias;
  }
  return results;
}

}  // namespace stretto::nn
