#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "stretto/text/model.h"
#include "stretto/text/trie.h"

namespace stretto::text {

struct UnigramOptions {
  std::optional<int32_t> unk_id = {};  // for characters that no token contains
  // Characters that no token contains become tokens <0x00> to <0xFF>, if the vocabulary has all of these.
  bool byte_fallback = false;
};

// The unigram language model (Kudo 2018): the segmentation of a word with the largest sum of scores; ties are
// broken as in Hugging Face tokenizers. An unknown character costs 10 more than the worst token;
// consecutive ones form one unknown token.
class Unigram : public Model {
 public:
  // scores[i]: the log probability of the i-th entry of the vocabulary. Throws DataError, naming `name`, if a
  // score is not finite or unk_id is not in the vocabulary.
  Unigram(Vocabulary vocabulary, std::vector<double> scores, UnigramOptions options, const std::string& name);

  // Throws DataError for an unknown character if there is no unk_id.
  void tokenize(std::string_view text, std::span<const WordRange> words,
                std::vector<TokenPiece>& out) const override;
  std::string description() const override;

 private:
  // The best segmentation of a word up to a byte.
  struct Path {
    double score;
    uint32_t begin;  // begin of its last token; `unreached`: there is no segmentation
    int32_t id;      // id of its last token; -1: an unknown character
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
