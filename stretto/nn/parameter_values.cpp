#include "stretto/nn/parameter_values.h"

#include "stretto/nn/initial_values.h"
#include "stretto/nn/tensor_parallel.h"

namespace stretto::nn {

void fill_parameter(const std::string& name, const Tensor& parameter, const TensorLayout& layout,
                    const TensorSource& source) {
  at::NoGradGuard no_grad;
  if (layout.cuts.empty()) {
    if (const Tensor shared = source.in_memory(name); shared.defined()) {
      require_shape(source, name, layout.global);
      return parameter.set_data(shared.detach().to(parameter.options()));
    }
  }
  if (!parameter.is_contiguous()) parameter.set_data(at::empty(parameter.sizes(), parameter.options()));
  read_elements(source, name, layout, {0, parameter.numel()}, parameter.detach().view({-1}));
}

void fill_parameters(torch::nn::Module& module, const TensorSource& source) {
  for (const LayerParameter& parameter : layer_parameters(module))
    if (source.has(parameter.name))
      fill_parameter(parameter.name, parameter.tensor, parameter.layout(), source);
}

void drop_values(torch::nn::Module& module, const TensorSource& source, at::Device device) {
  at::NoGradGuard no_grad;
  for (const LayerParameter& parameter : layer_parameters(module)) {
    if (!source.has(parameter.name)) continue;
    require_shape(source, parameter.name, parameter.layout().global);
    const Tensor& values = parameter.tensor;
    values.set_data(at::empty({1}, values.options().device(device)).expand(values.sizes()));
  }
}

}  // namespace stretto::nn
