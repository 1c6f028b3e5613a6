#include "stretto/kernels/norm.h"

#include <optional>

#include <torch/csrc/autograd/custom_function.h>

#include "stretto/kernels/activation.h"
#include "stretto/kernels/loop_types.h"
#include "stretto/nn/functional.h"
#include "stretto/nn/matmul.h"
#include "stretto/nn/parameter_gradient.h"

namespace stretto::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

void save_scalars(AutogradContext* context, const kernels::Norm& norm) {
  context->saved_data["eps"] = norm.eps;
  context->saved_data["p"] = c10::List<double>({norm.before.p, norm.after.p});
  context->saved_data["key"] =
      c10::List<int64_t>({static_cast<int64_t>(norm.before.key), static_cast<int64_t>(norm.after.key)});
}

void restore_scalars(AutogradContext* context, kernels::Norm& norm) {
  const auto p = context->saved_data["p"].toDoubleList();
  const auto key = context->saved_data["key"].toIntList();
  norm.eps = context->saved_data["eps"].toDouble();
  norm.before = {p[0], static_cast<uint64_t>(key[0])};
  norm.after = {p[1], static_cast<uint64_t>(key[1])};
}

struct NormDropoutFunction : torch::autograd::Function<NormDropoutFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight, const Tensor& offset,
                        kernels::Norm norm) {
    norm.weight = weight;
    norm.offset = offset;
    const auto result = kernels::norm_rows(x.clone(), norm);
    context->save_for_backward(
        {weight, offset, result.sum, result.mean, result.rstd, norm.samples, norm.places});
    save_scalars(context, norm);
    return result.out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& outputs) {
    const auto saved = context->get_saved_variables();
    kernels::Norm norm;
    norm.weight = saved[0], norm.offset = saved[1];
    norm.samples = saved[5], norm.places = saved[6];
    restore_scalars(context, norm);
    const auto sum_type = kernels::computed_type(norm.weight.scalar_type());
    const ParameterGradient weight(norm.weight, sum_type, context->needs_input_grad(1)),
        offset(norm.offset, sum_type, context->needs_input_grad(2));
    const auto gradients = kernels::norm_rows_backward(
        outputs[0].contiguous(), {{}, saved[2], saved[3], saved[4]}, norm, {weight.sum(), offset.sum(), {}});
    return {gradients.x, weight.result(), offset.result(), Tensor()};
  }
};

// The activation before a linear map: curve(x + bias), or the identity. bias may be undefined.
struct Entry {
  std::optional<kernels::Curve> curve;
  Tensor bias;

  // Recomputed in the backward pass rather than saved: it is the largest tensor of a transformer block.
  Tensor forward(const Tensor& x) const { return curve ? kernels::activate(*curve, x, bias) : x; }
};

// `biases` and `entry_biases` have one tensor or none, since autograd accepts no undefined tensors.
struct LinearNormFunction : torch::autograd::Function<LinearNormFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        const Tensor& residual, const Tensor& norm_weight, const Tensor& norm_offset,
                        at::TensorList biases, at::TensorList entry_biases,
                        std::optional<kernels::Curve> curve, kernels::Norm norm) {
    const Tensor bias = biases.empty() ? Tensor() : biases[0];
    norm.bias = bias, norm.residual = residual;
    norm.weight = norm_weight, norm.offset = norm_offset;
    const Entry entry = {curve, entry_biases.empty() ? Tensor() : entry_biases[0]};
    const auto result = kernels::norm_rows(product(operand(entry.forward(x)), weight), norm);
    context->save_for_backward({x, weight, bias, norm_weight, norm_offset, entry.bias, result.sum,
                                result.mean, result.rstd, norm.samples, norm.places});
    save_scalars(context, norm);
    if (curve) context->saved_data["curve"] = static_cast<int64_t>(*curve);
    return result.out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& outputs) {
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1], &bias = saved[2];
    kernels::Norm norm;
    norm.bias = bias, norm.weight = saved[3], norm.offset = saved[4];
    norm.samples = saved[9], norm.places = saved[10];
    restore_scalars(context, norm);
    Entry entry = {std::nullopt, saved[5]};
    if (context->saved_data.count("curve") > 0)
      entry.curve = static_cast<kernels::Curve>(context->saved_data["curve"].toInt());
    const auto sum_type = kernels::computed_type(x.scalar_type());
    // Inputs: x, weight, residual, norm_weight, norm_offset, the existing biases, curve, norm.
    const size_t at_bias = 5, at_entry_bias = at_bias + bias.defined();
    const size_t inputs = at_entry_bias + entry.bias.defined() + 2;
    const bool needs_entry_bias = entry.bias.defined() && context->needs_input_grad(at_entry_bias);
    const ParameterGradient bias_sum(bias, sum_type, bias.defined() && context->needs_input_grad(at_bias)),
        norm_weight(norm.weight, sum_type, context->needs_input_grad(3)),
        norm_offset(norm.offset, sum_type, context->needs_input_grad(4));
    const auto gradients =
        kernels::norm_rows_backward(outputs[0].contiguous(), {{}, saved[6], saved[7], saved[8]}, norm,
                                    {norm_weight.sum(), norm_offset.sum(), bias_sum.sum()});
    const Tensor grad = operand(gradients.x);
    variable_list result(inputs);
    if (context->needs_input_grad(1)) result[1] = weight_gradient(weight, grad, operand(entry.forward(x)));
    if (context->needs_input_grad(0) || needs_entry_bias)
      result[0] = input_gradient(grad, weight).to(weight.scalar_type());
    if (entry.curve && result[0].defined()) {
      const ParameterGradient entry_bias(entry.bias, sum_type, needs_entry_bias);
      result[0] = kernels::activate_backward(*entry.curve, result[0], x, entry.bias, entry_bias.sum());
      if (entry.bias.defined()) result[at_entry_bias] = entry_bias.result();
    }
    result[2] = gradients.residual;
    result[3] = norm_weight.result();
    result[4] = norm_offset.result();
    if (bias.defined()) result[at_bias] = bias_sum.result();
    return result;
  }
};

std::vector<Tensor> none_or_one(const Tensor& tensor) {
  return tensor.defined() ? std::vector<Tensor>{tensor} : std::vector<Tensor>{};
}

kernels::Norm keyed_by(const PackedLayout& layout, double eps) {
  kernels::Norm norm;
  norm.eps = eps;
  norm.samples = layout.samples;
  norm.places = layout.places;
  return norm;
}

}  // namespace

Tensor norm_dropout(const Tensor& x, const NormParameters& parameters, double p, uint64_t site,
                    const PackedLayout& layout, const Context& context) {
  kernels::Norm norm = keyed_by(layout, parameters.eps);
  norm.after = context.dropout(p, site);
  if (context.fast(x)) return NormDropoutFunction::apply(x, parameters.weight, parameters.bias, norm);
  norm.weight = parameters.weight;
  norm.offset = parameters.bias;
  return kernels::norm_rows_reference(x, norm);
}

Tensor linear_dropout_add_norm(const Tensor& x, const Affine& map, const Tensor& residual,
                               const NormParameters& parameters, double p, uint64_t site,
                               const PackedLayout& layout, const Context& context) {
  kernels::Norm norm = keyed_by(layout, parameters.eps);
  norm.before = context.dropout(p, site);
  if (context.fast(x)) {
    const auto bias = none_or_one(map.bias);
    return LinearNormFunction::apply(x, map.weight, residual.contiguous(), parameters.weight, parameters.bias,
                                     at::TensorList(bias), at::TensorList(), std::nullopt, norm);
  }
  norm.residual = residual;
  norm.weight = parameters.weight;
  norm.offset = parameters.bias;
  return kernels::norm_rows_reference(linear(x, map), norm);
}

Tensor mlp_dropout_add_norm(const Tensor& x, const Affine& in, Activation activation, const Affine& out,
                            const NormParameters& parameters, double p, uint64_t site,
                            const PackedLayout& layout, const Context& context) {
  if (!context.fast(x)) {
    const Tensor wide = kernels::activate_reference(activation, linear(x, in), {});
    return linear_dropout_add_norm(wide, out, x, parameters, p, site, layout, context);
  }
  kernels::Norm norm = keyed_by(layout, parameters.eps);
  norm.before = context.dropout(p, site);
  const auto in_bias = none_or_one(in.bias), out_bias = none_or_one(out.bias);
  return LinearNormFunction::apply(linear(x, {in.weight, {}}), out.weight, x.contiguous(), parameters.weight,
                                   parameters.bias, at::TensorList(out_bias), at::TensorList(in_bias),
                                   std::optional<kernels::Curve>(activation), norm);
}

}  // namespace stretto::nn
