#include "stretto/data/features/texts.h"

namespace stretto::data {

text::Encoding text_tokens(const text::Tokenizer& tokenizer, std::string_view text,
                           std::optional<std::string_view> pair, std::optional<int64_t> max_length) {
  text::EncodeOptions options = {.special_tokens = true};
  if (max_length) options.max_length = static_cast<size_t>(*max_length);
  return pair ? tokenizer.encode_pair(text, *pair, options) : tokenizer.encode(text, options);
}

}  // namespace stretto::data
