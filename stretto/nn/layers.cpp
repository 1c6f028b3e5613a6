#include "stretto/nn/layers.h"

#include <unordered_map>

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/instancenorm.h>
#include <torch/nn/modules/normalization.h>

namespace stretto::nn {
namespace {

// An empty module for a name within a path. It finds its children by their names; named_children() copies all
// of them, which takes quadratic time for a list of layers.
struct PathModule : torch::nn::Module {
  using Module::Module;
  std::unordered_map<std::string, torch::nn::Module*> children;
};

torch::nn::Module* find_child(const torch::nn::Module& module, const std::string& name) {
  if (const auto* path = dynamic_cast<const PathModule*>(&module)) {
    const auto found = path->children.find(name);
    return found == path->children.end() ? nullptr : found->second;
  }
  const auto children = module.named_children();
  const auto* found = children.find(name);
  return found == nullptr ? nullptr : found->get();
}

torch::nn::Module* add_child(torch::nn::Module& module, const std::string& name,
                             std::shared_ptr<torch::nn::Module> child) {
  torch::nn::Module* const added = module.register_module(name, std::move(child)).get();
  if (auto* path = dynamic_cast<PathModule*>(&module)) path->children[name] = added;
  return added;
}

}  // namespace

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

void register_at(torch::nn::Module& root, const std::string& path, std::shared_ptr<torch::nn::Module> layer) {
  torch::nn::Module* parent = &root;
  size_t begin = 0;
  for (size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', begin)) {
    const std::string name = path.substr(begin, dot - begin);
    torch::nn::Module* const child = find_child(*parent, name);
    parent = child != nullptr ? child : add_child(*parent, name, std::make_shared<PathModule>(name));
    begin = dot + 1;
  }
  add_child(*parent, path.substr(begin), std::move(layer));
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
