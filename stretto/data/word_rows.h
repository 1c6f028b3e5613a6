#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "stretto/tensor/batch.h"

namespace stretto::data {

// The words that the tokens of a packed batch are parts of, for models that read whole words.
class WordRows {
 public:
  // Of a further token: whether it is part of a word to predict, and whether it is the first of its tokens; `id`: that of the word by a
  // tokenizer of words.
  void add(bool in_word, bool is_first, int64_t id = 0);

  // Adds token_words [T] and word_ids [T], int64: the number of each token's word among those of the batch, -1 outside of words and in
  // the batch's padding; and the id of the word that begins at a token, else 0. REQUIRES: as many tokens as the batch has.
  void add_to(Batch& batch) const;

 private:
  int64_t count_ = 0;
  std::vector<int64_t> words_, ids_;
};

}  // namespace stretto::data
