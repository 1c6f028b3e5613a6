#include "stretto/models/layer_states.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"

namespace stretto {

std::vector<int64_t> layer_numbers(const std::string& layers, int64_t count, const std::string& source) {
  std::vector<int64_t> numbers;
  if (layers == "all") {
    for (int64_t i = 0; i <= count; ++i) numbers.push_back(i);
    return numbers;
  }
  for (const std::string_view text : split(layers, ',')) {
    const auto number = parse_int(std::string(trim(text)));
    if (!number || *number < -count - 1 || *number > count)
      throw ConfigError(
          "{}: layers: \"{}\" is not a layer; the model has {} layers: 0 (its embeddings) to {}, or {} to -1",
          source, trim(text), count, count, -count - 1);
    numbers.push_back(*number < 0 ? *number + count + 1 : *number);
  }
  return numbers;
}

Tensor side_by_side(const std::vector<Tensor>& states, const std::vector<int64_t>& layers) {
  if (layers.size() == 1) return states.at(static_cast<size_t>(layers.front()));
  std::vector<Tensor> parts;
  for (const int64_t layer : layers) parts.push_back(states.at(static_cast<size_t>(layer)));
  return at::cat(parts, 1);
}

void freeze_layers_behind(torch::nn::Module& model, const std::string& prefix,
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
