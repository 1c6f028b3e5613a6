#pragma once

#include "stretto/config/recipe.h"

namespace stretto {

// What a recipe is for. fit: a program that trains a Module of its own, which finds its model and its data by itself.
enum class Verb { train, test, fit };

// Refuses, before anything is started, a recipe that `verb` could not honour: settings it needs that are
// missing, that contradict each other, or that name files which do not exist. Sections the verb does not read
// are not looked at; the batch arithmetic, which depends on the ranks, is resolve_batch's. REQUIRES: recipe
// is resolved. Throws ConfigError that begins with the place of the setting to change.
void check_recipe(const Recipe& recipe, Verb verb);

}  // namespace stretto
