#include "stretto/base/error.h"
#include "stretto/base/tensor_layout.h"
#include "stretto/nn/tensor_parallel.h"
#include "stretto/tensor/tensor.h"

namespace stretto::nn {

TensorLayout layout_of(const torch::nn::Module& module, const std::string& path) {
  if (const size_t dot = path.find('.'); dot != std::string::npos)
    return layout_of(*module.named_children()[path.substr(0, dot)], path.substr(dot + 1));
  const std::vector<int64_t> sizes = module.named_parameters(/*recurse=*/false)[path].sizes().vec();
  const auto* declared = dynamic_cast<const HasLayout*>(&module);
  if (declared == nullptr) return {.global = sizes};
  TensorLayout layout = declared->layout(path);
  try {
    layout.check();
  } catch (const DataError& error) {
    throw ConfigError("parameter {} of a {}: {}", path, module.name(), error.what());
  }
  if (layout.local() != sizes) {
    throw ConfigError("parameter {} of a {} is [{}], but its layout says [{}]", path, module.name(),
                      fmt::join(sizes, ", "), fmt::join(layout.local(), ", "));
  }
  return layout;
}

}  // namespace stretto::nn
