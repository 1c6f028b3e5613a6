#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/text/added_tokens.h"
#include "stretto/text/bert_normalizer.h"
#include "stretto/text/encoding.h"
#include "stretto/text/input.h"
#include "stretto/text/post_processor.h"
#include "stretto/text/wordpiece.h"

namespace stretto::text {

struct TokenizerOptions {
  // Overrides what the files say, or what the vocabulary suggests, about lower case. Where they leave
  // strip_accents open, accents go exactly when case does, as in BERT.
  std::optional<bool> lowercase = {};
};

// All that a tokenizer is made of, as the files describe it.
struct TokenizerParts {
  std::string name;  // the file, for messages
  BertNormalizerOptions normalizer;
  std::vector<VocabularyEntry> vocabulary;
  WordPieceOptions model;
  std::vector<AddedToken> added_tokens;
  Template post_processor;
};

// Text to ids and back: WordPiece with BERT's normalisation, equal to Hugging Face tokenizers in ids and
// offsets. A const Tokenizer is safe to use from many threads. In text that is not UTF-8, each maximal invalid
// subpart is one U+FFFD.
class Tokenizer {
 public:
  // From a folder with tokenizer.json or vocab.txt, and perhaps tokenizer_config.json; or from one of these
  // files. A vocab.txt by itself is taken as cased exactly when it holds upper-case letters outside
  // [...]; the choice is logged. Throws DataError with the file and the position, for models other than
  // WordPiece too.
  static Tokenizer load(const std::filesystem::path& path, const TokenizerOptions& options = {});

  // Throws DataError, naming parts.name, when the parts do not fit together.
  explicit Tokenizer(TokenizerParts parts);

  // Words (Hugging Face's is_split_into_words) are encoded one by one: word_ids are their indices, offsets count from the
  // beginning of each word. In a whole text, word_ids are the indices of the parts that the model's vocabulary is applied
  // to. Throws ConfigError or DataError if the text cannot be cut to options.max_length (see plan_windows).
  Encoding encode(const Input& text, const EncodeOptions& options = {}) const;
  Encoding encode_pair(const Input& first, const Input& second, const EncodeOptions& options = {}) const;

  // The same, and what max_length cuts off in further encodings, each of up to max_length tokens with the template's own. At
  // least one; consecutive ones share options.stride tokens of the text that is cut (question answering: the question as
  // first text, only_second).
  std::vector<Encoding> encode_windows(const Input& text, const EncodeOptions& options = {}) const;
  std::vector<Encoding> encode_pair_windows(const Input& first, const Input& second,
                                            const EncodeOptions& options = {}) const;

  // Added tokens included; nothing when there is none.
  std::optional<int32_t> id(std::string_view token) const;
  std::optional<std::string_view> token(int32_t id) const;

  // One more than the largest id: the least number of rows of an embedding.
  int32_t vocab_size() const;

  // A name for the tokenizer's behaviour: caches of ids made under another fingerprint are stale.
  const std::string& fingerprint() const { return fingerprint_; }

  bool lowercase() const { return normalizer_.options().lowercase; }

 private:
  struct Scratch;
  std::vector<Encoding> encode_all(const Input& first, const Input* second, const EncodeOptions& options,
                                   bool all_windows) const;
  Sequence tokenize(const Input& input) const;
  void tokenize_text(std::string_view text, Scratch& scratch, Sequence& out) const;
  void tokenize_piece(std::string_view piece, uint32_t first_character, Scratch& scratch,
                      Sequence& out) const;
  void tokenize_words(size_t begin, size_t end, Scratch& scratch, Sequence& out) const;

  std::string fingerprint_;
  BertNormalizer normalizer_;
  WordPiece model_;
  Template post_processor_;
  std::vector<VocabularyEntry> added_;  // what the model's vocabulary lacks
  AddedTokenMatcher raw_tokens_;
  AddedTokenMatcher normalized_tokens_;
};

}  // namespace stretto::text
