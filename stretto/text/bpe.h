#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stretto/text/model.h"

namespace stretto::text {

// The tokens of the rules of a byte-pair encoding, the first rule first.
using Merges = std::vector<std::pair<std::string, std::string>>;

struct BpeOptions {
  // The initial symbols of a word, to which rules are applied: its bytes, spelled as byte_level.h describes,
  // or its characters.
  bool byte_level = true;
  // characters that the vocabulary lacks become the tokens of their bytes, "<0xE4>" and so on
  bool byte_fallback = false;
  // for bytes and characters that the vocabulary lacks; unset: these have no token
  std::optional<std::string> unk_token = {};
  bool fuse_unk = false;       // consecutive unknown bytes or characters become one unknown token
  bool ignore_merges = false;  // a word that is a token is not split, whatever the rules give
};

// Byte-pair encoding (Sennrich et al. 2016; Radford et al. 2019; Kudo & Richardson 2018): repeatedly merges,
// among all neighbouring symbols of a word, the leftmost pair of the earliest rule, until no rule applies.
class Bpe : public Model {
 public:
  // Throws DataError, naming `name`, if the tokens of a rule or its result are not in the vocabulary, or if
  // the vocabulary has only some of the tokens of byte_fallback.
  Bpe(Vocabulary tokens, const Merges& merges, BpeOptions options, const std::string& name);

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
  void find_bytes(const std::string& name);
  void spell_bytes(std::string_view text, uint32_t word, WordRange range,
                   std::vector<TokenPiece>& symbols) const;
  void spell_characters(std::string_view text, uint32_t word, WordRange range,
                        std::vector<TokenPiece>& symbols) const;
  void merge(Workspace& work) const;

  BpeOptions options_;
  int32_t unknown_id_ = -1;
  std::array<int32_t, 256> byte_ids_{};  // of the tokens of bytes; -1: there is none
  std::vector<Rule> rules_;              // open addressing; a power of two, at most half full
  int shift_ = 0;
  std::string descriptions_of_merges_;
  std::vector<std::string> whole_word_bytes_;
  StringTable whole_words_;  // words that are one token
};

}  // namespace stretto::text
