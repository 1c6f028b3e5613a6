#pragma once

#include <filesystem>

#include "stretto/config/recipe.h"
#include "stretto/corpus/tagged.h"
#include "stretto/model_config/sequence_tagger.h"

namespace stretto::tasks {

// Creates the folder from which a new sequence tagger starts (config/tasks/new_tagger.h): config.json;
// tokenizer.json, whose vocabulary is the words of the file of word vectors or of `train`; and the word
// vectors, if there is such a file, as model.safetensors. With a transformer, the tokenizer is the
// transformer's, and the tokenizer of the words is in the subfolder text::words_folder; the transformer's
// weights are not copied. The folder is in recipe.data.cache, named by a hash of all its inputs, and written
// if it does not exist. Logs its contents. REQUIRES: is_new_tagger(recipe.model).
std::filesystem::path make_new_tagger(const Recipe& recipe, const corpus::TaggedCorpus& train);

}  // namespace stretto::tasks
