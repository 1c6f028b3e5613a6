#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/text/tokenizer_parts.h"

namespace stretto::text {

// The stages of encoding and decoding of a Tokenizer, in the order of its files.
class TokenizerStages {
 public:
  explicit TokenizerStages(TokenizerParts parts);

  std::vector<Encoding> encode_all(const Input& first, const Input* second, const EncodeOptions& options,
                                   bool all_windows) const;
  std::string decode(std::span<const int32_t> ids, const DecodeOptions& options) const;
  // The token that stands for an id in texts; nullopt if none does.
  std::optional<std::string_view> decoded_token(int32_t id, const DecodeOptions& options) const;
  const Decoder& decoder() const { return decoder_; }
  std::optional<int32_t> id(std::string_view token) const;
  std::optional<std::string_view> token(int32_t id) const;
  std::optional<int32_t> cls_id() const;
  int32_t vocab_size() const;
  const std::string& fingerprint() const { return fingerprint_; }
  const std::string& hugging_face_class() const { return hugging_face_class_; }
  const SavedLengths& saved_lengths() const { return saved_lengths_; }
  bool lowercase() const { return normalizer_->lowercase(); }
  TemplateIds template_ids() const;
  std::optional<int32_t> eos_id() const { return eos_id_; }
  bool reads_any_bytes() const { return model_->reads_any_bytes(); }
  bool reads_in_parts() const { return reads_in_parts_; }
  void append_ids(std::string_view text, IdEncoderState& state, std::vector<int32_t>& ids) const;
  void append_word(std::string_view word, IdEncoderState& state, std::vector<int32_t>& ids) const;

 private:
  struct Scratch;  // encode.cpp
  Sequence tokenize(const Input& input) const;
  void tokenize_text(std::string_view text, Scratch& scratch, Sequence& out) const;
  void tokenize_piece(std::string_view piece, uint32_t first_character, Scratch& scratch,
                      Sequence& out) const;
  void tokenize_words(NormalizedText& text, Scratch& scratch, Sequence& out) const;
  void append_piece(std::string_view piece, uint32_t first_character, IdEncoderState& state,
                    std::vector<int32_t>& ids) const;
  void append_words(NormalizedText& text, IdEncoderState& state, std::vector<int32_t>& ids) const;
  void append_each_word(std::string_view text, IdEncoderState& state, std::vector<int32_t>& ids) const;

  std::string fingerprint_;
  std::unique_ptr<Normalizer> normalizer_;
  std::unique_ptr<PreTokenizer> pre_tokenizer_;
  std::unique_ptr<Model> model_;
  PostProcessor post_processor_;
  Decoder decoder_;
  Side truncation_side_;
  SavedLengths saved_lengths_;
  std::string hugging_face_class_;
  bool reads_in_parts_;
  std::vector<VocabularyEntry> added_;  // added tokens that the model's vocabulary lacks
  std::vector<int32_t> special_ids_;    // sorted
  AddedTokenMatcher raw_tokens_;
  AddedTokenMatcher normalized_tokens_;
  std::optional<int32_t> eos_id_;
};

}  // namespace stretto::text
