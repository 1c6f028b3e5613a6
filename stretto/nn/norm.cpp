#include "stretto/kernels/norm.h"

#include <optional>
#include <utility>

#include <torch/csrc/autograd/graph_task.h>

#include "stretto/base/error.h"
#include "stretto/comm/group.h"
#include "stretto/kernels/activation.h"
#include "stretto/kernels/loop_types.h"
#include "stretto/nn/apply.h"
#include "stretto/nn/functional.h"
#include "stretto/nn/matmul.h"
#include "stretto/nn/parameter_gradient.h"
#include "stretto/nn/saved_group.h"

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

// Tensors that may be undefined. Autograd does not accept those, so a function takes a list of the defined
// ones and flags that mark them.
class Optional {
 public:
  Optional(std::initializer_list<Tensor> all) {
    for (const Tensor& one : all) {
      present_.push_back(one.defined());
      if (one.defined()) given_.push_back(one);
    }
  }
  at::TensorList given() const { return given_; }
  const c10::List<bool>& present() const { return present_; }

 private:
  std::vector<Tensor> given_;
  c10::List<bool> present_;
};

// Returns for each tensor the index of its input, where the list begins at input `first`; 0 if it is
// undefined.
std::vector<size_t> inputs_of(const c10::List<bool>& present, size_t first) {
  std::vector<size_t> inputs;
  for (const bool is_present : present) inputs.push_back(is_present ? first++ : 0);
  return inputs;
}

Tensor at_input(at::TensorList given, size_t input, size_t first) {
  return input == 0 ? Tensor() : given[input - first];
}

// `given`: weight and, except for RMSNorm, offset.
struct NormDropoutFunction : torch::autograd::Function<NormDropoutFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& x, at::TensorList given, kernels::Norm norm) {
    norm.weight = given[0];
    if (given.size() > 1) norm.offset = given[1];
    const auto result = kernels::norm_rows(x, norm);
    context->save_for_backward(
        {norm.weight, norm.offset, result.sum, result.mean, result.rstd, norm.samples, norm.places});
    save_scalars(context, norm);
    return result.out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& outputs) {
    const auto saved = context->get_saved_variables();
    kernels::Norm norm;
    norm.weight = saved[0], norm.offset = saved[1];
    norm.samples = saved[5], norm.places = saved[6];
    restore_scalars(context, norm);
    const bool has_offset = norm.offset.defined();
    const auto sum_type = kernels::computed_type(norm.weight.scalar_type());
    const ParameterGradient weight(norm.weight, sum_type, context->needs_input_grad(1)),
        offset(norm.offset, sum_type, has_offset && context->needs_input_grad(2));
    const auto gradients = kernels::norm_rows_backward(
        outputs[0].contiguous(), {{}, saved[2], saved[3], saved[4]}, norm, {weight.sum(), offset.sum(), {}});
    variable_list result = {gradients.x, weight.result()};
    if (has_offset) result.push_back(offset.result());
    result.emplace_back();
    return result;
  }
};

// The input of a linear map: activation(x + bias) * factor, or x. bias and factor may be undefined.
struct Entry {
  std::optional<kernels::Activation> activation;
  Tensor bias, factor;

  // Recomputed in the backward pass rather than saved, as it is the largest tensor of a transformer block.
  Tensor forward(const Tensor& x) const {
    return activation ? kernels::activate(*activation, x, bias, factor) : x;
  }
};

// norm(residual + dropout(entry(x) W^T + bias)), or the sum itself without a norm. `given`: bias, the norm's
// weight and offset, the entry's bias and factor. The product is summed over `ranks`, unless null; if
// residual and result are rows of this rank (`of_rows`), it gets theirs of the sum.
struct LinearNormFunction : torch::autograd::Function<LinearNormFunction> {
  enum Part : size_t { map_bias, norm_weight, norm_offset, entry_bias, entry_factor };
  static constexpr size_t first_part = 3;  // the inputs before are x, weight and residual

  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        const Tensor& residual, at::TensorList given, const c10::List<bool>& present,
                        bool transposed, std::optional<kernels::Activation> activation, kernels::Norm norm,
                        Group* ranks, bool of_rows) {
    const auto inputs = inputs_of(present, first_part);
    const auto part = [&](Part which) { return at_input(given, inputs[which], first_part); };
    norm.bias = part(map_bias), norm.residual = residual;
    norm.weight = part(norm_weight), norm.offset = part(norm_offset);
    const Entry entry = {activation, part(entry_bias), part(entry_factor)};
    Tensor mapped = product(operand(entry.forward(x)), oriented(weight, transposed), {}, ranks);
    if (of_rows) {
      const Tensor parts = std::exchange(mapped, at::empty(residual.sizes(), mapped.options()));
      ranks->reduce_scatter(mapped, parts).wait();
    } else if (ranks != nullptr) {
      ranks->all_reduce(mapped).wait();
    }
    const auto result = kernels::norm_rows(mapped, norm);
    const bool normalises = norm.weight.defined();  // otherwise the sum is not needed in backward
    context->save_for_backward({x, weight, norm.bias, norm.weight, norm.offset, entry.bias, entry.factor,
                                normalises ? result.sum : Tensor(), result.mean, result.rstd, norm.samples,
                                norm.places});
    save_scalars(context, norm);
    save_group(context, of_rows ? ranks : nullptr);
    context->saved_data["present"] = present;
    context->saved_data["transposed"] = transposed;
    if (activation) context->saved_data["activation"] = static_cast<int64_t>(*activation);
    return normalises ? result.out : result.sum;
  }

  static variable_list backward(AutogradContext* context, const variable_list& outputs) {
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1];
    kernels::Norm norm;
    norm.bias = saved[2], norm.weight = saved[3], norm.offset = saved[4];
    norm.samples = saved[10], norm.places = saved[11];
    restore_scalars(context, norm);
    Entry entry = {std::nullopt, saved[5], saved[6]};
    if (context->saved_data.count("activation") > 0)
      entry.activation = static_cast<kernels::Activation>(context->saved_data["activation"].toInt());
    const bool transposed = context->saved_data["transposed"].toBool();
    const auto inputs = inputs_of(context->saved_data["present"].toBoolList(), first_part);
    const auto needs = [&](Part which) {
      return inputs[which] > 0 && context->needs_input_grad(inputs[which]);
    };
    // null for arguments that are not tensors, then x, weight and residual
    variable_list result(first_part + 6);
    const auto sum_type = kernels::computed_type(x.scalar_type());
    const ParameterGradient bias_sum(norm.bias, sum_type, needs(map_bias)),
        weight_sum(norm.weight, sum_type, needs(norm_weight)),
        offset_sum(norm.offset, sum_type, needs(norm_offset));
    const auto gradients =
        kernels::norm_rows_backward(outputs[0].contiguous(), {{}, saved[7], saved[8], saved[9]}, norm,
                                    {weight_sum.sum(), offset_sum.sum(), bias_sum.sum()});
    Tensor of_all_rows = gradients.x;
    if (Group* const ranks = saved_group(*context)) {
      of_all_rows = at::empty({x.size(0), gradients.x.size(1)}, gradients.x.options());
      ranks->all_gather(of_all_rows, gradients.x).wait();
    }
    const Tensor grad = operand(of_all_rows);
    const bool needs_entry = context->needs_input_grad(0) || needs(entry_bias) || needs(entry_factor);
    if (needs_entry) result[0] = input_gradient(grad, oriented(weight, transposed)).to(weight.scalar_type());
    result[2] = gradients.residual;
    const ParameterGradient entry_bias_sum(entry.bias, sum_type, needs(entry_bias));
    Tensor inner, factor_gradient;
    if (entry.activation && needs_entry) {
      // Only this function has x and the factor, so the results take their memory, unless the graph is kept.
      const bool keeps = torch::autograd::get_current_graph_task_keep_graph();
      inner = keeps ? x.clone() : x;
      factor_gradient = keeps && entry.factor.defined() ? entry.factor.clone() : entry.factor;
      kernels::activate_backward(*entry.activation, result[0], inner, entry.bias, factor_gradient,
                                 entry_bias_sum.sum());
    }
    if (context->needs_input_grad(1)) {
      if (!inner.defined()) inner = entry.forward(x);
      result[1] = weight_gradient(weight, grad, operand(inner), transposed);
    }
    const std::array<Tensor, 5> of_parts = {bias_sum.result(), weight_sum.result(), offset_sum.result(),
                                            entry_bias_sum.result(), factor_gradient};
    size_t next = first_part;
    for (size_t which = 0; which < of_parts.size(); ++which) {
      if (inputs[which] > 0)
        result.insert(result.begin() + static_cast<std::ptrdiff_t>(next++), of_parts[which]);
    }
    return result;
  }
};

kernels::Norm keyed_by(const PackedLayout& layout, double eps) {
  kernels::Norm norm;
  norm.eps = eps;
  norm.samples = layout.samples;
  norm.places = layout.places;
  return norm;
}

Tensor norm_of(const Tensor& x, const NormParameters& parameters, kernels::Norm norm,
               const Context& context) {
  norm.eps = parameters.eps;
  if (context.fast(x)) {
    std::vector<Tensor> given = {parameters.weight};
    if (parameters.bias.defined()) given.push_back(parameters.bias);
    return apply<NormDropoutFunction>(x.contiguous(), at::TensorList(given), norm);
  }
  norm.weight = parameters.weight;
  norm.offset = parameters.bias;
  return kernels::norm_rows_reference(x, norm);
}

// Throws ShapeError unless the layout has as many rows for each rank as x.
void require_own_rows(const Tensor& x, const PackedLayout& layout, const Group& ranks) {
  if (x.size(0) * ranks.size() == layout.tokens) return;
  throw ShapeError(
      "found {} for a rank's part of {} rows; each of {} ranks (tp) needs as many, so pad the rows to a multiple",
      describe(x), layout.tokens, ranks.size());
}

// norm(residual + dropout(entry(x) W^T + b)); the sum itself if `parameters` has no weight. If the map
// divides rows, residual and result are those of this rank, and x and layout all of them.
Tensor linear_norm(const Tensor& x, const Affine& map, const Tensor& residual,
                   const NormParameters& parameters, const Entry& entry, double p, uint64_t site,
                   const PackedLayout& layout, const Context& context) {
  const bool divides_rows = map.inputs_over != nullptr && map.of_rows;
  kernels::Norm norm = keyed_by(layout, parameters.eps);
  if (divides_rows) {
    require_own_rows(residual, layout, *map.inputs_over);
    const int64_t begin = map.inputs_over->rank() * residual.size(0), end = begin + residual.size(0);
    norm.samples = norm.samples.slice(0, begin, end);
    norm.places = norm.places.slice(0, begin, end);
  }
  norm.before = context.dropout(p, site);
  if (context.fast(x)) {
    const Optional parts = {map.bias, parameters.weight, parameters.bias, entry.bias, entry.factor};
    return apply<LinearNormFunction>(x, map.weight, residual.contiguous(), parts.given(), parts.present(),
                                     map.transposed, entry.activation, norm, map.inputs_over, divides_rows);
  }
  norm.residual = residual;
  norm.weight = parameters.weight;
  norm.offset = parameters.bias;
  const Tensor inner =
      entry.activation ? kernels::activate_reference(*entry.activation, x, entry.bias, entry.factor) : x;
  return kernels::norm_rows_reference(linear(inner, map), norm);
}

Affine without_bias(Affine map) {
  map.bias = Tensor();
  return map;
}

}  // namespace

Tensor norm(const Tensor& x, const NormParameters& parameters, const Context& context) {
  return norm_of(x, parameters, {}, context);
}

Tensor norm_dropout(const Tensor& x, const NormParameters& parameters, double p, uint64_t site,
                    const PackedLayout& layout, const Context& context) {
  kernels::Norm norm = keyed_by(layout, parameters.eps);
  norm.after = context.dropout(p, site);
  return norm_of(x, parameters, norm, context);
}

Tensor linear_dropout_add_norm(const Tensor& x, const Affine& map, const Tensor& residual,
                               const NormParameters& parameters, double p, uint64_t site,
                               const PackedLayout& layout, const Context& context) {
  return linear_norm(x, map, residual, parameters, {}, p, site, layout, context);
}

Tensor mlp_dropout_add_norm(const Tensor& x, const Affine& in, Activation activation, const Affine& out,
                            const NormParameters& parameters, double p, uint64_t site,
                            const PackedLayout& layout, const Context& context) {
  return linear_norm(linear(x, without_bias(in)), out, x, parameters, {activation, in.bias, {}}, p, site,
                     layout, context);
}

Tensor linear_dropout_add(const Tensor& x, const Affine& map, const Tensor& residual, double p, uint64_t site,
                          const PackedLayout& layout, const Context& context) {
  return linear_norm(x, map, residual, {}, {}, p, site, layout, context);
}

Tensor norm_mlp_dropout_add(const Tensor& x, const NormParameters& norm, const Gate& gate, const Affine& out,
                            double p, uint64_t site, const PackedLayout& layout, const Context& context) {
  std::vector<Affine> maps = {without_bias(gate.in)};
  if (gate.factor.weight.defined()) maps.push_back(gate.factor);
  const auto wide = norm_linears(x, norm, maps, context);
  const Entry entry = {gate.activation, gate.in.bias, maps.size() > 1 ? wide[1] : Tensor()};
  return linear_norm(wide[0], out, x, {}, entry, p, site, layout, context);
}

}  // namespace stretto::nn
