#include "stretto/data/word_rows.h"

namespace stretto::data {

void WordRows::add(bool in_word, bool is_first, int64_t id) {
  count_ += in_word && is_first;
  words_.push_back(in_word ? count_ - 1 : -1);
  ids_.push_back(is_first ? id : 0);
}

void WordRows::add_to(Batch& batch) const {
  std::vector<int64_t> words = words_, ids = ids_;
  const auto tokens = static_cast<size_t>(batch.at("input_ids").numel());
  words.resize(tokens, -1);
  ids.resize(tokens, 0);
  batch.tensors["token_words"] = at::tensor(words, at::kLong);
  batch.tensors["word_ids"] = at::tensor(ids, at::kLong);
}

}  // namespace stretto::data
