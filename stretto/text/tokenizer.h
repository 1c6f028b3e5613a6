#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/text/encoding.h"
#include "stretto/text/input.h"

namespace stretto::text {

struct TokenizerParts;
class TokenizerStages;

struct TokenizerOptions {
  // Overrides what the files say, or what the vocabulary suggests, about lower case. Where they leave
  // strip_accents open, accents go exactly when case does, as in BERT. Only WordPiece has the setting.
  std::optional<bool> lowercase = {};
  // Overrides the files: byte-level BPE puts a space in front of each text (and each word of a text that is split, which needs
  // it). Of no effect on other models.
  std::optional<bool> add_prefix_space = {};
};

// What a tokenizer.json says about lengths. transformers, and stretto, leave them to the caller; Hugging Face's tokenizers applies
// them: encode(text, *saved.truncation) is its truncation.
struct SavedLengths {
  std::optional<EncodeOptions> truncation = {};  // with a max_length
  std::optional<size_t> padding = {};            // the tokens that every text is padded to
};

struct DecodeOptions {
  bool skip_special_tokens = true;
};

// Text to ids and back, equal to Hugging Face tokenizers in ids, offsets and decoded text: WordPiece (BERT), byte-level BPE
// (GPT-2, RoBERTa, BART) and Unigram (XLM-RoBERTa). A const Tokenizer is safe to use from many threads. In text that is not
// UTF-8, each maximal invalid subpart is one U+FFFD.
class Tokenizer {
 public:
  // From a folder with a tokenizer's files, or from one of these files (tokenizer_load.h lists them). A vocab.txt by itself is
  // taken as cased exactly when it holds upper-case letters outside [...]; the choice is logged. Throws DataError with the
  // file and the position, for what is not available too.
  static Tokenizer load(const std::filesystem::path& path, const TokenizerOptions& options = {});

  // Throws DataError, naming parts.name, when the parts do not fit together.
  explicit Tokenizer(TokenizerParts parts);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

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

  // The text of ids, as Hugging Face's decoder writes it; ids without a token are left out. Throws DataError when the file
  // names a decoder that is not available.
  std::string decode(std::span<const int32_t> ids, const DecodeOptions& options = {}) const;

  // Added tokens included; nothing when there is none.
  std::optional<int32_t> id(std::string_view token) const;
  std::optional<std::string_view> token(int32_t id) const;

  // The token in front of each encoding (BERT's [CLS], RoBERTa's <s>), nothing if the template has none: what stands for the
  // whole text in classification, and for no answer in question answering.
  std::optional<int32_t> cls_id() const;

  // One more than the largest id: the least number of rows of an embedding.
  int32_t vocab_size() const;

  // A name for the tokenizer's behaviour: caches of ids made under another fingerprint are stale.
  const std::string& fingerprint() const;

  // The tokenizer class by which transformers loads the files; for a tokenizer_config.json where there is none.
  const std::string& hugging_face_class() const;

  const SavedLengths& saved_lengths() const;

  bool lowercase() const;

 private:
  std::unique_ptr<const TokenizerStages> stages_;
};

// Tokenizer::encode of each text, in order, on up to `threads` threads (0: all processors).
std::vector<Encoding> encode_batch(const Tokenizer& tokenizer, std::span<const Input> texts,
                                   const EncodeOptions& options = {}, int threads = 0);

}  // namespace stretto::text
