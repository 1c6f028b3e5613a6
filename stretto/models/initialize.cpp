#include "stretto/models/initialize.h"

#include <set>

#include "stretto/nn/has_layout.h"
#include "stretto/nn/initial_values.h"
#include "stretto/nn/layers.h"

namespace stretto {

void initialize_parameters(torch::nn::Module& model, uint64_t seed, const std::vector<std::string>& names,
                           double std, const std::string& table, int64_t padding_row) {
  at::NoGradGuard no_grad;
  std::set<std::string> norms;
  for (const auto& item : model.named_modules("", /*include_self=*/false)) {
    if (std::dynamic_pointer_cast<nn::LayerNorm>(item.value()) != nullptr)
      norms.insert(item.key() + ".weight");
  }
  const auto parameters = model.named_parameters();
  for (const std::string& name : names) {
    const Tensor& parameter = parameters[name];
    const TensorLayout layout = nn::layout_of(model, name);
    if (name.ends_with(".bias")) {
      parameter.zero_();
    } else if (norms.contains(name)) {
      parameter.fill_(1);
    } else {
      nn::fill_normal(parameter, layout, nn::initial_key(seed, name), std);
    }
    if (name == table && padding_row < layout.global[0]) {
      const int64_t width = layout.global[1];
      nn::zero_elements(parameter, layout, {padding_row * width, (padding_row + 1) * width});
    }
  }
}

}  // namespace stretto
