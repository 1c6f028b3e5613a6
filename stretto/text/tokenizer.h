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

struct IdEncoderState;
struct TokenizerParts;
class TokenizerStages;

// Settings that override those in a tokenizer's files.
struct TokenizerOptions {
  // Overrides the files' setting of lower case, or the guess from the vocabulary. If the files do not set
  // strip_accents, it equals `lowercase`, as in BERT. It applies to WordPiece only.
  std::optional<bool> lowercase = {};
  // Overrides the files: whether byte-level BPE inserts a space before each text (and before each word of a
  // split text, which requires it). No effect on other models.
  std::optional<bool> add_prefix_space = {};
  // Log a choice that the files leave open: the case of a vocab.txt, the family of a vocab.json.
  bool log_choices = true;
};

// The truncation and padding of a tokenizer.json. As in transformers, they are not applied unless the
// caller does; Hugging Face's tokenizers applies them. encode(text, *saved.truncation) truncates in the same
// way.
struct SavedLengths {
  std::optional<EncodeOptions> truncation = {};  // has a max_length
  std::optional<size_t> padding = {};            // the length to which every text is padded
};

// The ids that the template adds before and after a single text.
struct TemplateIds {
  std::vector<int32_t> before, after;
};

// How ids are decoded.
struct DecodeOptions {
  bool skip_special_tokens = true;
};

// Text to ids and back, equal to Hugging Face tokenizers in ids, offsets and decoded text: WordPiece (BERT),
// BPE of bytes (GPT-2, RoBERTa, BART, Llama 3, Qwen) and of characters (Llama 2), and Unigram (XLM-RoBERTa).
// A const Tokenizer is safe to use from many threads. In text that is not UTF-8, each maximal invalid subpart
// is one U+FFFD.
class Tokenizer {
 public:
  // Loads a folder with a tokenizer's files, or one of these files (tokenizer_load.h lists them). A single
  // vocab.txt is treated as cased if it contains upper-case letters outside [...]; the choice is logged.
  // Throws DataError, with the file and the position, for malformed files and unavailable features.
  static Tokenizer load(const std::filesystem::path& path, const TokenizerOptions& options = {});

  // Throws DataError, naming parts.name, if the parts are inconsistent.
  explicit Tokenizer(TokenizerParts parts);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // Words (Hugging Face's is_split_into_words) are encoded one by one: word_ids are their indices, and
  // offsets are relative to each word. In a whole text, word_ids are the indices of the words of the
  // pre-tokenizer. Throws ConfigError or DataError if the text cannot be truncated to options.max_length (see
  // plan_windows).
  Encoding encode(const Input& text, const EncodeOptions& options = {}) const;
  Encoding encode_pair(const Input& first, const Input& second, const EncodeOptions& options = {}) const;

  // Like encode, with the tokens beyond max_length in further encodings of up to max_length tokens, including
  // those of the template. Returns at least one encoding; consecutive ones share options.stride tokens of the
  // truncated text (question answering: the question as first text, only_second).
  std::vector<Encoding> encode_windows(const Input& text, const EncodeOptions& options = {}) const;
  std::vector<Encoding> encode_pair_windows(const Input& first, const Input& second,
                                            const EncodeOptions& options = {}) const;

  // The text of ids, decoded as by Hugging Face's decoder; ids without a token are skipped. Throws
  // DataError for an unavailable decoder.
  std::string decode(std::span<const int32_t> ids, const DecodeOptions& options = {}) const;

  // The id of a token, including added tokens; nullopt if there is none.
  std::optional<int32_t> id(std::string_view token) const;
  std::optional<std::string_view> token(int32_t id) const;

  // The id of the first token of each encoding (BERT's [CLS], RoBERTa's <s>), which represents the whole text
  // in classification, and no answer in question answering; nullopt if the template has none.
  std::optional<int32_t> cls_id() const;

  TemplateIds template_ids() const;

  // The token that ends a document: eos_token of the folder's configuration; nullopt if it has none.
  std::optional<int32_t> eos_id() const;

  // Whether IdEncoder accepts any bytes and decoding restores them: byte-level BPE whose vocabulary contains
  // all 256 bytes.
  bool reads_any_bytes() const;

  // Whether the ids of a text are those of its parts if it is cut before a space (U+0020) that follows a
  // character other than white space. Texts of any size can then be encoded piece by piece.
  bool reads_in_parts() const;

  // The largest id plus one: the minimum number of rows of an embedding.
  int32_t vocab_size() const;

  // Identifies the tokenizer's behaviour: cached ids with another fingerprint are stale.
  const std::string& fingerprint() const;

  // The tokenizer class by which transformers loads the files; written to a tokenizer_config.json if there is
  // none.
  const std::string& hugging_face_class() const;

  const SavedLengths& saved_lengths() const;

  bool lowercase() const;

 private:
  friend class IdEncoder;
  friend class IdDecoder;
  void append_ids(std::string_view text, IdEncoderState& state, std::vector<int32_t>& ids) const;
  void append_word(std::string_view word, IdEncoderState& state, std::vector<int32_t>& ids) const;

  std::unique_ptr<const TokenizerStages> stages_;
};

// Encodes each text like Tokenizer::encode, in order, on up to `threads` threads (0: all processors).
std::vector<Encoding> encode_batch(const Tokenizer& tokenizer, std::span<const Input> texts,
                                   const EncodeOptions& options = {}, int threads = 0);

}  // namespace stretto::text
