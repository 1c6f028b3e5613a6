#include "stretto/text/tokenizer.h"

#include "stretto/text/tokenizer_stages.h"

namespace stretto::text {

Tokenizer::Tokenizer(TokenizerParts parts)
    : stages_(std::make_unique<const TokenizerStages>(std::move(parts))) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Encoding Tokenizer::encode(const Input& text, const EncodeOptions& options) const {
  return std::move(stages_->encode_all(text, nullptr, options, false).front());
}

Encoding Tokenizer::encode_pair(const Input& first, const Input& second, const EncodeOptions& options) const {
  return std::move(stages_->encode_all(first, &second, options, false).front());
}

std::vector<Encoding> Tokenizer::encode_windows(const Input& text, const EncodeOptions& options) const {
  return stages_->encode_all(text, nullptr, options, true);
}

std::vector<Encoding> Tokenizer::encode_pair_windows(const Input& first, const Input& second,
                                                     const EncodeOptions& options) const {
  return stages_->encode_all(first, &second, options, true);
}

std::string Tokenizer::decode(std::span<const int32_t> ids, const DecodeOptions& options) const {
  return stages_->decode(ids, options);
}

std::optional<int32_t> Tokenizer::id(std::string_view token) const { return stages_->id(token); }
std::optional<std::string_view> Tokenizer::token(int32_t id) const { return stages_->token(id); }
std::optional<int32_t> Tokenizer::cls_id() const { return stages_->cls_id(); }
int32_t Tokenizer::vocab_size() const { return stages_->vocab_size(); }
const std::string& Tokenizer::fingerprint() const { return stages_->fingerprint(); }
const std::string& Tokenizer::hugging_face_class() const { return stages_->hugging_face_class(); }
const SavedLengths& Tokenizer::saved_lengths() const { return stages_->saved_lengths(); }
bool Tokenizer::lowercase() const { return stages_->lowercase(); }
TemplateIds Tokenizer::template_ids() const { return stages_->template_ids(); }
std::optional<int32_t> Tokenizer::eos_id() const { return stages_->eos_id(); }
bool Tokenizer::reads_any_bytes() const { return stages_->reads_any_bytes(); }
bool Tokenizer::reads_in_parts() const { return stages_->reads_in_parts(); }
void Tokenizer::append_ids(std::string_view text, IdEncoderState& state, std::vector<int32_t>& ids) const {
  stages_->append_ids(text, state, ids);
}
void Tokenizer::append_word(std::string_view word, IdEncoderState& state, std::vector<int32_t>& ids) const {
  stages_->append_word(word, state, ids);
}

}  // namespace stretto::text
