#include "stretto/text/id_encoder.h"

#include "stretto/text/id_encoder_state.h"
#include "stretto/text/tokenizer.h"
#include "stretto/text/utf8.h"

namespace stretto::text {

IdEncoder::IdEncoder(const Tokenizer& tokenizer)
    : tokenizer_(tokenizer), state_(std::make_unique<IdEncoderState>()) {}
IdEncoder::IdEncoder(IdEncoder&&) noexcept = default;
IdEncoder::~IdEncoder() = default;

void IdEncoder::append(std::string_view text, std::vector<int32_t>& ids) {
  if (!tokenizer_.reads_any_bytes()) {
    std::string repaired;
    return tokenizer_.append_ids(replace_invalid_utf8(text, repaired), *state_, ids);
  }
  while (!text.empty()) {
    const size_t valid = find_invalid_utf8(text);
    tokenizer_.append_ids(text.substr(0, valid), *state_, ids);
    text.remove_prefix(valid);
    size_t invalid = 0;
    while (invalid < text.size() && find_invalid_utf8(text.substr(invalid)) == 0) ++invalid;
    tokenizer_.append_word(text.substr(0, invalid), *state_, ids);
    text.remove_prefix(invalid);
  }
}

}  // namespace stretto::text
