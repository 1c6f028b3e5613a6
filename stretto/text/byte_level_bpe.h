#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stretto/text/model.h"

namespace stretto::text {

// The pairs of tokens that the rules of a byte-pair encoding merge, in order of priority.
using Merges = std::vector<std::pair<std::string, std::string>>;

struct ByteLevelBpeOptions {
  std::optional<std::string> unk_token = {};  // for bytes that the vocabulary lacks; nullopt: none
  bool fuse_unk = false;                      // one unknown token for consecutive such bytes
  bool ignore_merges = false;                 // a word that is a token is not split
};

// Byte-pair encoding of the bytes of a word (Sennrich et al. 2016; Radford et al. 2019): repeatedly merges
// the leftmost adjacent pair with the highest-priority rule until no rule applies. byte_level.h describes the
// representation of bytes in the vocabulary.
class ByteLevelBpe : public Model {
 public:
  // Throws DataError, naming `name`, if the vocabulary lacks a rule's tokens or the merged token.
  ByteLevelBpe(Vocabulary tokens, const Merges& merges, ByteLevelBpeOptions options, const std::string& name);

  void tokenize(std::string_view text, std::span<const WordRange> words,
                std::vector<TokenPiece>& out) const override;
  bool reads_any_bytes() const override;
  std::string description() const override;

 private:
  struct Rule {
    uint64_t pair = ~uint64_t{0};  // left id, right id
    uint32_t rank = 0;             // position in the list of rules
    int32_t merged = 0;            // id
  };
  struct Workspace;

  void add_rule(uint64_t pair, uint32_t rank, int32_t merged);
  const Rule* rule(int32_t left, int32_t right) const;
  void find_whole_words();
  void spell(std::string_view text, uint32_t word, WordRange range, std::vector<TokenPiece>& symbols) const;
  void merge(Workspace& work) const;

  ByteLevelBpeOptions options_;
  int32_t unknown_id_ = -1;
  std::array<int32_t, 256> byte_ids_{};
  std::vector<Rule> rules_;  // open addressing; a power of two, at most half full
  int shift_ = 0;
  std::string descriptions_of_merges_;
  std::vector<std::string> whole_word_bytes_;
  StringTable whole_words_;  // words that are one token
};

}  // namespace stretto::text
