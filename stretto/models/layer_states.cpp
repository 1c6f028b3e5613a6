#include "stretto/models/layer_states.h"

#include <algorithm>

#include "stretto/base/strings.h"

namespace stretto {

Tensor side_by_side(const std::vector<Tensor>& states, const std::vector<int64_t>& layers) {
  if (layers.size() == 1) return states.at(static_cast<size_t>(layers.front()));
  std::vector<Tensor> parts;
  for (const int64_t layer : layers) parts.push_back(states.at(static_cast<size_t>(layer)));
  return at::cat(parts, 1);
}

void freeze_layers_after(torch::nn::Module& model, const std::string& prefix,
                         const std::vector<int64_t>& layers) {
  const int64_t read = *std::ranges::max_element(layers);
  for (const auto& item : model.named_parameters()) {
    const size_t at = item.key().find(prefix);
    if (at == std::string::npos) continue;
    const std::string rest = item.key().substr(at + prefix.size());
    if (parse_int(rest.substr(0, rest.find('.'))).value_or(-1) >= read) item.value().set_requires_grad(false);
  }
}

}  // namespace stretto
