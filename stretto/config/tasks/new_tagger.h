#pragma once

#include "stretto/config/recipe.h"
#include "stretto/config/task_kind.h"
#include "stretto/config/tasks/tagger_settings.h"

namespace stretto {

// Whether the recipe's model is a new sequence tagger: model.type is sequence-tagger, or model.config is a
// file of this model_type without vocab_size. Does not throw: errors in the file are reported when it is
// read.
bool is_new_tagger(const ModelConfig& model);

// The settings of a new tagger: the recipe's section sequence_tagger, or the content of model.config.
// Relative paths start at the working directory. Throws ConfigError with file, line and column for unknown
// keys, wrong types, values out of range and settings that exclude each other. REQUIRES:
// is_new_tagger(recipe.model).
TaggerSettings read_new_tagger(const Recipe& recipe);

// The new tagger as a kind of new model, for the registry.
NewModel new_tagger_kind();

}  // namespace stretto
