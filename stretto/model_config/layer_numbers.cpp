#include "stretto/model_config/layer_numbers.h"

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
    const auto number = parse_int(trim(text));
    if (!number || *number < -count - 1 || *number > count)
      throw ConfigError(
          "{}: layers: \"{}\" is not a layer; the model has {} layers: 0 (its embeddings) to {}, or {} to -1",
          source, trim(text), count, count, -count - 1);
    numbers.push_back(*number < 0 ? *number + count + 1 : *number);
  }
  return numbers;
}

}  // namespace stretto
