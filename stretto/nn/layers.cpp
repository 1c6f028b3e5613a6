#include "stretto/nn/layers.h"

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/instancenorm.h>
#include <torch/nn/modules/normalization.h>

#include "stretto/base/strings.h"

namespace stretto::nn {

Linear::Linear(int64_t in, int64_t out, const LinearOptions& options)
    : transposed(options.transposed),
      weight(register_parameter("weight", transposed ? at::empty({in, out}) : at::empty({out, in}))) {
  if (options.bias) bias = register_parameter("bias", at::empty({out}));
}

Embedding::Embedding(int64_t rows, int64_t width, bool looked_up_only)
    : weight(register_parameter("weight", at::empty({rows, width}))),
      sparse(looked_up_only),
      hook(std::make_shared<RowHook>()) {}

Norm::Norm(int64_t width, double epsilon)
    : weight(register_parameter("weight", at::empty({width}))), eps(epsilon) {}

LayerNorm::LayerNorm(int64_t width, double epsilon) : Norm(width, epsilon) {
  bias = register_parameter("bias", at::empty({width}));
}

Tensor LayerNorm::forward(const Tensor& x) const {
  return at::layer_norm(x, {x.size(-1)}, weight, bias, eps);
}

torch::nn::Module& make_path(torch::nn::Module& root, const std::string& path) {
  torch::nn::Module* module = &root;
  for (const std::string_view piece : split(path, '.')) {
    const std::string name(piece);
    const auto children = module->named_children();
    const auto* existing = children.find(name);
    module = existing != nullptr
                 ? existing->get()
                 : module->register_module(name, std::make_shared<torch::nn::Module>(name)).get();
  }
  return *module;
}

bool has_weight_decay(const torch::nn::Module& owner, const std::string& name) {
  if (name == "bias" || name.rfind("bias_", 0) == 0) return false;
  const auto* type = &owner;
  return dynamic_cast<const Norm*>(type) == nullptr &&
         dynamic_cast<const torch::nn::LayerNormImpl*>(type) == nullptr &&
         dynamic_cast<const torch::nn::GroupNormImpl*>(type) == nullptr &&
         dynamic_cast<const torch::nn::BatchNorm1dImpl*>(type) == nullptr &&
         dynamic_cast<const torch::nn::BatchNorm2dImpl*>(type) == nullptr &&
         dynamic_cast<const torch::nn::BatchNorm3dImpl*>(type) == nullptr &&
         dynamic_cast<const torch::nn::InstanceNorm1dImpl*>(type) == nullptr &&
         dynamic_cast<const torch::nn::InstanceNorm2dImpl*>(type) == nullptr &&
         dynamic_cast<const torch::nn::InstanceNorm3dImpl*>(type) == nullptr;
}

}  // namespace stretto::nn
