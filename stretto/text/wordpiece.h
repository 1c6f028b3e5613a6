#pragma once

#include "stretto/text/model.h"

namespace stretto::text {

struct WordPieceOptions {
  std::string unk_token = "[UNK]";
  std::string continuing_subword_prefix = "##";
  size_t max_input_chars_per_word = 100;
};

// WordPiece: splits a word into the longest pieces of the vocabulary, from left to right; a word that cannot
// be split completely, or is too long, becomes one unknown token (Wu et al. 2016; details as in Hugging
// Face tokenizers).
class WordPiece : public Model {
 public:
  // Throws DataError, naming `name`, if the vocabulary lacks the unknown token.
  WordPiece(Vocabulary vocabulary, WordPieceOptions options, const std::string& name);

  void tokenize(std::string_view text, std::span<const WordRange> words,
                std::vector<TokenPiece>& out) const override;
  std::string description() const override;

 private:
  void tokenize_word(std::string_view text, uint32_t word, WordRange range,
                     std::vector<TokenPiece>& out) const;

  StringTable continuing_;  // the tokens with the prefix, without it
  WordPieceOptions options_;
  int32_t unknown_id_ = 0;
};

}  // namespace stretto::text
