#include <algorithm>
#include <optional>
#include <utility>

#include "stretto/base/error.h"
#include "stretto/comm/group.h"
#include "stretto/kernels/loop_types.h"
#include "stretto/kernels/norm.h"
#include "stretto/nn/apply.h"
#include "stretto/nn/functional.h"
#include "stretto/nn/matmul.h"
#include "stretto/nn/parameter_gradient.h"
#include "stretto/nn/saved_group.h"
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

// The sum over maps of their gradients of the input, undefined if no output has a gradient. `grads` are those
// of the outputs as operands, `weights` [out, in]. `sum_over`: as of input_gradient().
Tensor input_gradients(const std::vector<Tensor>& grads, const std::vector<Tensor>& weights,
                       const Group* sum_over) {
  Tensor sum;
  for (size_t map = 0; map < grads.size(); ++map) {
    if (!grads[map].defined()) continue;
    if (sum.defined()) {
      add_input_gradient(sum, grads[map], weights[map]);
    } else {
      sum = input_gradient(grads[map], weights[map], sum_over);
    }
  }
  return sum;
}

// The rows of all `ranks`, of which this rank has x; x itself if that is null. They are on their way from the
// construction on.
class RowsOfAll {
 public:
  RowsOfAll(const Tensor& x, Group* ranks) : all_(x) {
    if (ranks == nullptr) return;
    all_ = at::empty({ranks->size() * x.size(0), x.size(1)}, x.options());
    work_ = ranks->all_gather(all_, x.contiguous());
  }
  const Tensor& joined() {
    work_.wait();
    return all_;
  }

 private:
  Tensor all_;
  Work work_;
};

// The normalisation of x before its maps: none, or one whose weight and, unless it is RMSNorm, offset are the
// last parameters.
struct InputNorm {
  explicit InputNorm(const std::optional<NormParameters>& norm = {}) {
    if (!norm) return;
    parts = norm->bias.defined() ? 2 : 1;
    eps = norm->eps;
  }
  kernels::Norm with(at::TensorList parameters) const {
    kernels::Norm norm;
    norm.eps = eps;
    const size_t first = parameters.size() - static_cast<size_t>(parts);
    norm.weight = parameters[first];
    if (parts > 1) norm.offset = parameters[first + 1];
    return norm;
  }
  int64_t parts = 0;
  double eps = 0;
};

// Several linear maps of one input, which may be normalised before. `parameters` are the weight and, if the
// map is `biased`, the bias of each map, then those of the norm: autograd accepts no undefined tensors. The
// gradient of x is summed over `ranks`, unless null. Rows that would take memory until backward are computed
// there again: the normalised ones and, if x are rows of this rank (`of_rows`), those joined of all ranks.
struct LinearsFunction : torch::autograd::Function<LinearsFunction> {
  enum Saved : size_t { input, mean, rstd, first_parameter };

  static variable_list forward(AutogradContext* context, const Tensor& x, at::TensorList parameters,
                               const c10::List<bool>& biased, const c10::List<bool>& transposed, Group* ranks,
                               bool of_rows, const InputNorm& norm) {
    kernels::NormResult normed = {x, x, {}, {}};
    if (norm.parts > 0) normed = kernels::norm_rows(x, norm.with(parameters));
    variable_list saved = {x, normed.mean, normed.rstd};
    saved.insert(saved.end(), parameters.begin(), parameters.end());
    context->save_for_backward(saved);
    context->saved_data["biased"] = biased;
    context->saved_data["transposed"] = transposed;
    context->saved_data["of_rows"] = of_rows;
    context->saved_data["norm_parts"] = norm.parts;
    context->saved_data["norm_eps"] = norm.eps;
    save_group(context, ranks);
    const Tensor wide_x = operand(RowsOfAll(normed.out, of_rows ? ranks : nullptr).joined());
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
    const size_t maps = outputs.size();
    const at::TensorList parameters = at::TensorList(saved).slice(first_parameter);
    std::vector<size_t> at_weight;  // of the inputs, where parameters begin at 1
    for (size_t map = 0, next = 1; map < maps; ++map) {
      at_weight.push_back(next);
      next += biased[map] ? 2 : 1;
    }
    const Tensor& x = saved[input];
    InputNorm norm;
    norm.parts = context->saved_data["norm_parts"].toInt();
    norm.eps = context->saved_data["norm_eps"].toDouble();
    std::vector<Tensor> grads(maps), wide_grads(maps), weights(maps);
    for (size_t map = 0; map < maps; ++map) {
      weights[map] = oriented(parameters[at_weight[map] - 1], transposed[map]);
      if (!outputs[map].defined()) continue;
      grads[map] = outputs[map].contiguous();
      wide_grads[map] = operand(grads[map]);
    }
    variable_list result(1 + parameters.size() + 5);
    Group* const ranks = saved_group(*context);
    const bool of_rows = context->saved_data["of_rows"].toBool();
    std::optional<RowsOfAll> rows;  // for the gradients of weights
    if (std::ranges::any_of(at_weight, [&](size_t weight) { return context->needs_input_grad(weight); }))
      rows.emplace(norm.parts > 0 ? kernels::norm_rows(x, norm.with(parameters)).out : x,
                   of_rows ? ranks : nullptr);
    Work sum_over_ranks;  // proceeds while the gradients of the parameters are computed
    if (context->needs_input_grad(0) || norm.parts > 0) {
      result[0] = input_gradients(wide_grads, weights, ranks);
      if (result[0].defined()) result[0] = result[0].to(x.scalar_type());
      if (ranks != nullptr && result[0].defined() && of_rows) {
        const Tensor parts = std::exchange(result[0], at::empty(x.sizes(), x.options()));
        sum_over_ranks = ranks->reduce_scatter(result[0], parts);
      } else if (ranks != nullptr && result[0].defined()) {
        sum_over_ranks = ranks->all_reduce(result[0]);
      }
    }
    const Tensor wide_x = rows ? operand(rows->joined()) : Tensor();
    for (size_t map = 0; map < maps; ++map) {
      if (!grads[map].defined()) continue;
      const size_t weight = at_weight[map], bias = weight + 1;
      if (context->needs_input_grad(weight))
        result[weight] = weight_gradient(parameters[weight - 1], wide_grads[map], wide_x, transposed[map]);
      if (biased[map] && context->needs_input_grad(bias))
        result[bias] = bias_gradient(parameters[bias - 1], grads[map]);
    }
    sum_over_ranks.wait();
    if (norm.parts > 0 && result[0].defined()) {
      const kernels::Norm all = norm.with(parameters);
      const auto sum_type = kernels::computed_type(all.weight.scalar_type());
      const size_t weight = 1 + parameters.size() - static_cast<size_t>(norm.parts), offset = weight + 1;
      const ParameterGradient weight_sum(all.weight, sum_type, context->needs_input_grad(weight)),
          offset_sum(all.offset, sum_type, norm.parts > 1 && context->needs_input_grad(offset));
      result[0] = kernels::norm_rows_backward(result[0].contiguous(), {{}, x, saved[mean], saved[rstd]}, all,
                                              {weight_sum.sum(), offset_sum.sum(), {}})
                      .x;
      result[weight] = weight_sum.result();
      if (norm.parts > 1) result[offset] = offset_sum.result();
    }
    return result;
  }
};

std::vector<Tensor> maps_of(const Tensor& x, const std::optional<NormParameters>& norm,
                            const std::vector<Affine>& maps) {
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
  if (norm) parameters.push_back(norm->weight);
  if (norm && norm->bias.defined()) parameters.push_back(norm->bias);
  std::vector<Tensor> results =
      apply<LinearsFunction>(x, at::TensorList(parameters), biased, transposed, maps.at(0).outputs_over,
                             maps[0].outputs_over != nullptr && maps[0].of_rows, InputNorm(norm));
  for (size_t map = 0; map < maps.size(); ++map) {
    Group* const ranks = maps[map].inputs_over;
    if (ranks == nullptr) continue;
    results[map] =
        maps[map].of_rows ? own_rows_of_sum(results[map], *ranks) : sum_of_parts(results[map], *ranks);
    if (maps[map].bias.defined()) results[map] = results[map] + maps[map].bias;
  }
  return results;
}

}  // namespace

Tensor linear(const Tensor& x, const Affine& map) { return linears(x, {map})[0]; }

std::vector<Tensor> linears(const Tensor& x, const std::vector<Affine>& maps) {
  return maps_of(x, std::nullopt, maps);
}

std::vector<Tensor> norm_linears(const Tensor& x, const NormParameters& parameters,
                                 const std::vector<Affine>& maps, const Context& context) {
  if (!context.fast(x)) return linears(norm(x, parameters, context), maps);
  return maps_of(x.contiguous(), parameters, maps);
}

}  // namespace stretto::nn
