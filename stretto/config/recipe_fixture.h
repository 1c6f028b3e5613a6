#pragma once

#include "stretto/config/recipe.h"

namespace stretto {

// The recipe of the text of a file, r.yaml.
inline Recipe recipe_of(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  return parse_recipe(yaml, "r.yaml", overrides);
}

}  // namespace stretto
