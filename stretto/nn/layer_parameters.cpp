#include "stretto/base/error.h"
#include "stretto/base/tensor_layout.h"
#include "stretto/nn/tensor_parallel.h"
#include "stretto/tensor/tensor.h"

namespace stretto::nn {
namespace {

// `prefix`: the module's path and a dot, or "" for the root.
void visit(const torch::nn::Module& module, const std::string& prefix, std::vector<LayerParameter>& found) {
  for (const auto& item : module.named_parameters(/*recurse=*/false))
    found.push_back({prefix + item.key(), item.key(), &module, item.value()});
  for (const auto& child : module.named_children()) visit(*child.value(), prefix + child.key() + ".", found);
}

}  // namespace

TensorLayout LayerParameter::layout() const {
  const std::vector<int64_t> sizes = tensor.sizes().vec();
  const auto* declared = dynamic_cast<const HasLayout*>(layer);
  if (declared == nullptr) return {.global = sizes};
  TensorLayout layout = declared->layout(own_name);
  try {
    layout.check();
  } catch (const DataError& error) {
    throw ConfigError("parameter {} of a {}: {}", own_name, layer->name(), error.what());
  }
  if (layout.local() != sizes) {
    throw ConfigError("parameter {} of a {} is [{}], but its layout says [{}]", own_name, layer->name(),
                      fmt::join(sizes, ", "), fmt::join(layout.local(), ", "));
  }
  return layout;
}

std::vector<LayerParameter> layer_parameters(const torch::nn::Module& module) {
  std::vector<LayerParameter> found;
  visit(module, "", found);
  return found;
}

}  // namespace stretto::nn
