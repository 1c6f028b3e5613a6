#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/text/vocabulary.h"

namespace stretto::text {

// A word: bytes [begin, end) of a text, at least one code point.
struct WordRange {
  uint32_t begin;
  uint32_t end;
};

// A token: bytes [begin, end) of the text that contains its word.
struct TokenPiece {
  int32_t id;
  uint32_t begin;
  uint32_t end;
  uint32_t word;  // index into the words
};

// Cuts words into tokens of a vocabulary. One class per family: WordPiece, Bpe, Unigram. Safe to use from
// many threads.
class Model {
 public:
  explicit Model(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
  virtual ~Model() = default;

  // Appends the tokens of the words, in order, to `out`. REQUIRES: `text` is valid UTF-8.
  virtual void tokenize(std::string_view text, std::span<const WordRange> words,
                        std::vector<TokenPiece>& out) const = 0;

  // Whether words may contain any bytes, each of which has a token.
  virtual bool reads_any_bytes() const { return false; }

  // All settings besides the vocabulary that tokens depend on.
  virtual std::string description() const = 0;

  const Vocabulary& vocabulary() const { return vocabulary_; }

 private:
  Vocabulary vocabulary_;
};

}  // namespace stretto::text
