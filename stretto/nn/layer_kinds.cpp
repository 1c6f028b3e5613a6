#include "stretto/nn/layer_kinds.h"

#include "stretto/nn/layers.h"

namespace stretto::nn {
namespace {

bool is_own(const torch::nn::Module& module) {
  const auto* type = &module;
  return dynamic_cast<const Linear*>(type) != nullptr || dynamic_cast<const Embedding*>(type) != nullptr ||
         dynamic_cast<const Norm*>(type) != nullptr;
}

void visit(const torch::nn::Module& module, const std::string& path, LayerKinds& kinds) {
  if (!module.parameters(/*recurse=*/false).empty())
    (is_own(module) ? kinds.own : kinds.other) = path.empty() ? "the module itself" : path;
  for (const auto& child : module.named_children())
    visit(*child.value(), path.empty() ? child.key() : path + "." + child.key(), kinds);
}

}  // namespace

LayerKinds layer_kinds(const torch::nn::Module& module) {
  LayerKinds kinds;
  visit(module, "", kinds);
  return kinds;
}

}  // namespace stretto::nn
