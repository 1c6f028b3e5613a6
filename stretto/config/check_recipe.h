#pragma once

#include "stretto/config/recipe.h"

namespace stretto {

// What a recipe is for. fit: a program that trains a Module of its own and finds its model and data by itself.
enum class Verb { train, test, fit };

// Refuses a recipe that `verb` could not honour, before anything is started: settings that are missing, that contradict
// each other, or that name files which do not exist. Sections that the verb does not read are not checked; the batch
// sizes, which depend on the world size, are checked by resolve_batch. REQUIRES: recipe is resolved. Throws ConfigError
// that begins with the position of the setting to change.
void check_recipe(const Recipe& recipe, Verb verb);

}  // namespace stretto
