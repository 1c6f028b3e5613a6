#include "stretto/nn/has_layout.h"

#include "stretto/base/error.h"
#include "stretto/tensor/tensor.h"

namespace stretto::nn {

TensorLayout layout_of(const torch::nn::Module& module, const std::string& path) {
  if (const size_t dot = path.find('.'); dot != std::string::npos)
    return layout_of(*module.named_children()[path.substr(0, dot)], path.substr(dot + 1));
  const std::vector<int64_t> here = module.named_parameters(/*recurse=*/false)[path].sizes().vec();
  const auto* cut = dynamic_cast<const HasLayout*>(&module);
  if (cut == nullptr) return {.global = here};
  TensorLayout layout = cut->layout(path);
  try {
    layout.check();
  } catch (const DataError& error) {
    throw ConfigError("parameter {} of a {}: {}", path, module.name(), error.what());
  }
  if (layout.local() != here) {
    throw ConfigError("parameter {} of a {} is [{}], but its layout says [{}]", path, module.name(),
                      fmt::join(here, ", "), fmt::join(layout.local(), ", "));
  }
  return layout;
}

}  // namespace stretto::nn
