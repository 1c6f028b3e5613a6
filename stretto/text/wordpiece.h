#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/text/string_table.h"

namespace stretto::text {

struct VocabularyEntry {
  std::string token;
  int32_t id;
};

struct WordPieceOptions {
  std::string unk_token = "[UNK]";
  std::string continuing_subword_prefix = "##";
  size_t max_input_chars_per_word = 100;
};

// In bytes. Far beyond any that is used, and small enough that looking for the longest match stays cheap.
inline constexpr size_t longest_token = 4096;

// A piece of a word: bytes [begin, end) of the text that holds the word.
struct WordPieceToken {
  int32_t id;
  size_t begin;
  size_t end;
};

// WordPiece: a word is cut into the longest pieces of the vocabulary, from left to right; a word that cannot
// be cut to the end, or is too long, is unknown as a whole (Wu et al. 2016; details as in Hugging Face
// tokenizers).
class WordPiece {
 public:
  // Throws DataError, naming `name`, when the vocabulary lacks the unknown token, has an id out of bounds or
  // twice, or a token beyond longest_token.
  WordPiece(std::vector<VocabularyEntry> vocabulary, WordPieceOptions options, const std::string& name);
  WordPiece(WordPiece&&) = default;  // the tables view the vocabulary's strings: movable, not copyable
  WordPiece& operator=(WordPiece&&) = default;

  // Appends the pieces of text[begin, end), a word of at least one code point, to `out`.
  void tokenize(std::string_view text, size_t begin, size_t end, std::vector<WordPieceToken>& out) const;

  std::optional<int32_t> id(std::string_view token) const;
  std::optional<std::string_view> token(int32_t id) const;

  size_t size() const { return whole_.size(); }                             // different tokens
  int32_t id_limit() const { return static_cast<int32_t>(by_id_.size()); }  // one more than the largest id

 private:
  std::vector<VocabularyEntry> vocabulary_;
  std::vector<int32_t> by_id_;  // index into vocabulary_, or -1
  StringTable whole_;           // every token
  StringTable continuing_;      // what follows the prefix in each token that begins with it
  WordPieceOptions options_;
  int32_t unknown_id_ = 0;
};

}  // namespace stretto::text
