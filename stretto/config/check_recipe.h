#pragma once

#include "stretto/config/recipe.h"

namespace stretto {

// The use of a recipe. fit: a program that trains its own Module and loads model and data itself.
enum class Verb { train, test, fit };

// Checks a recipe before anything is started: throws ConfigError, which begins with the position of the
// setting to change, for settings that are missing, that contradict each other, or that name files which do
// not exist. Sections that the verb does not read are not checked; batch sizes, which depend on the world
// size, are checked by resolve() (strategy/topology.h). REQUIRES: recipe is resolved.
void check_recipe(const Recipe& recipe, Verb verb);

}  // namespace stretto
