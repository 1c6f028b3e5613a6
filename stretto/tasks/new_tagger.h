#pragma once

#include <filesystem>

#include "stretto/config/recipe.h"
#include "stretto/corpus/tagged.h"
#include "stretto/model_config/sequence_tagger.h"

namespace stretto::tasks {

// The folder that a new sequence tagger starts from (config/tasks/new_tagger.h): config.json; tokenizer.json
// with the vocabulary, the words of the file of word vectors, or of `train`; the word vectors, if there is
// such a file, as model.safetensors. With a transformer, the tokenizer is the transformer's, and the
// tokenizer of the words is in the folder text::words_folder; the transformer's weights stay where they are.
// The folder is in recipe.data.cache, named by a hash of all that it depends on, and written if it does not
// exist. Logs what it holds. REQUIRES: is_new_tagger(recipe.model).
std::filesystem::path make_new_tagger(const Recipe& recipe, const corpus::TaggedCorpus& train);

}  // namespace stretto::tasks
