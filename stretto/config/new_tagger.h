#pragma once

#include "stretto/config/recipe.h"
#include "stretto/config/tagger_settings.h"

namespace stretto {

// Whether the recipe's model is a new tagger of words: model.type is sequence-tagger, or model.config is a
// file of this model_type without vocab_size. Throws nothing: another file is read where it is used.
bool is_new_tagger(const ModelConfig& model);

// The settings of a new tagger: the recipe's section sequence_tagger, or the content of model.config.
// Relative paths start at the working directory. Throws ConfigError with file, line and column for unknown
// keys, wrong types, values out of range and settings that exclude each other. REQUIRES:
// is_new_tagger(recipe.model).
TaggerSettings read_new_tagger(const Recipe& recipe);

// Throws ConfigError for settings that exclude each other or that a new tagger does not have. REQUIRES:
// is_new_tagger(recipe.model).
void check_new_tagger(const Recipe& recipe);

// Throws ConfigError for a setting of the section sequence_tagger, which has no effect without a new tagger.
void require_unused_tagger(const Recipe& recipe);

}  // namespace stretto
