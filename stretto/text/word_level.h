#pragma once

#include "stretto/text/model.h"

namespace stretto::text {

// WordLevel of Hugging Face tokenizers: each word is one token, the unknown token if the vocabulary lacks it.
class WordLevel : public Model {
 public:
  // Throws DataError, naming `name`, if the vocabulary lacks the unknown token.
  WordLevel(Vocabulary vocabulary, std::string unk_token, const std::string& name);

  void tokenize(std::string_view text, std::span<const WordRange> words,
                std::vector<TokenPiece>& out) const override;
  std::string description() const override { return unk_token_ + "\n"; }

 private:
  std::string unk_token_;
  int32_t unknown_id_;
};

}  // namespace stretto::text
