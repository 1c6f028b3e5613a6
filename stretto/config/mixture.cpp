#include "stretto/config/mixture.h"

#include <algorithm>
#include <cmath>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/strings.h"

namespace stretto {

std::vector<MixturePart> mixture_of(const Recipe& recipe) {
  std::vector<MixturePart> parts;
  for (const std::string& text : recipe.data.mixture) {
    const std::string place = recipe.origins.label("data.mixture");
    const size_t equals = std::min(text.rfind('='), text.size());
    const auto weight = equals < text.size() ? parse_double(text.substr(equals + 1)) : std::nullopt;
    if (equals == 0 || !weight || !std::isfinite(*weight) || *weight <= 0)
      throw ConfigError("{}: \"{}\" is not PATH=WEIGHT with a weight above 0, such as wiki.txt=0.7", place,
                        text);
    const std::filesystem::path path = expand_home(text.substr(0, equals));
    if (std::ranges::find(parts, path, &MixturePart::path) != parts.end())
      throw ConfigError("{}: {} occurs twice; remove one, or add their weights", place, path.string());
    parts.push_back({path, *weight});
  }
  return parts;
}

}  // namespace stretto
