#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "stretto/text/model.h"
#include "stretto/text/trie.h"

namespace stretto::text {

struct UnigramOptions {
  std::optional<int32_t> unk_id = {};  // for characters that no token holds
  bool byte_fallback =
      false;  // they are spelled by tokens <0x00> to <0xFF>, if the vocabulary has all that it takes
};

// The unigram language model (Kudo 2018): a word is cut such that the sum of its tokens' scores is largest; ties go to the
// cut that comes first in Hugging Face tokenizers. A character of no token costs 10 more than the worst token; neighbouring ones
// are one unknown token.
class Unigram : public Model {
 public:
  // scores[i]: a log probability, of the i-th entry of the vocabulary. Throws DataError, naming `name`, when a score is not
  // finite or unk_id is not in the vocabulary.
  Unigram(Vocabulary vocabulary, std::vector<double> scores, UnigramOptions options, const std::string& name);

  // Throws DataError for a character of no token when there is no unk_id.
  void tokenize(std::string_view text, std::span<const WordRange> words,
                std::vector<TokenPiece>& out) const override;
  std::string description() const override;

 private:
  // The best cut of what ends at one byte of a word.
  struct Path {
    double score;
    uint32_t begin;  // of its last token; `unreached` for none
    int32_t id;      // of its last token; -1: a character of no token
  };

  void find_paths(std::string_view word, std::vector<Path>& paths) const;
  void add_unknown(std::string_view text, uint32_t begin, uint32_t end, uint32_t word,
                   std::vector<TokenPiece>& out) const;

  std::string name_;
  std::vector<double> scores_;  // by id
  UnigramOptions options_;
  double unknown_score_;
  std::array<int32_t, 256> byte_ids_{};
  std::string description_of_scores_;
  Trie trie_;
};

}  // namespace stretto::text
