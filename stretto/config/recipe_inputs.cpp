#include "stretto/config/recipe_inputs.h"

#include <nlohmann/json.hpp>

namespace stretto {

std::vector<Input> inputs_of(const Recipe& recipe) {
  std::vector<Input> inputs;
  const nlohmann::json settings = shared_settings(recipe);
  for (const auto& [name, value] : settings.items()) {
    const auto place = recipe.origins.places.find(name);
    inputs.push_back({name, value.is_null() ? "unset" : value.dump(),
                      place == recipe.origins.places.end() ? "" : place->second});
  }
  return inputs;
}

}  // namespace stretto
