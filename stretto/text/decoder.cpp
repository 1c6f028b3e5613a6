#include "stretto/text/decoder.h"

#include <array>
#include <utility>

#include "stretto/base/error.h"
#include "stretto/text/byte_level.h"
#include "stretto/text/utf8.h"

namespace stretto::text {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  if (from.empty()) return;
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

// Applies the clean-up of Hugging Face's WordPiece decoder to one token.
void clean_up(std::string& token) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 11> rules = {
      {{" .", "."},
       {" ?", "?"},
       {" !", "!"},
       {" ,", ","},
       {" ' ", "'"},
       {" n't", "n't"},
       {" 'm", "'m"},
       {" do not", " don't"},
       {" 's", "'s"},
       {" 've", "'ve"},
       {" 're", "'re"}}};
  for (const auto& [from, to] : rules) replace_all(token, from, to);
}

std::string wordpiece_part(const Decoder& decoder, std::string_view token, bool first) {
  std::string part;
  if (first) {
    part = token;
  } else if (token.starts_with(decoder.mark)) {
    part = token.substr(decoder.mark.size());
  } else {
    part = ' ' + std::string(token);
  }
  if (decoder.cleanup) clean_up(part);
  return part;
}

std::string metaspace_part(const Decoder& decoder, std::string_view token, bool first) {
  std::string part(token);
  replace_all(part, decoder.mark, first && decoder.drop_first_mark ? "" : " ");
  return part;
}

}  // namespace

std::string decode_tokens(const Decoder& decoder, std::span<const std::string_view> tokens) {
  std::string text;
  for (size_t i = 0; i < tokens.size(); ++i) {
    switch (decoder.kind) {
      case Decoder::Kind::join_by_space:
        if (i > 0) text += ' ';
        text += tokens[i];
        break;
      case Decoder::Kind::wordpiece:
        text += wordpiece_part(decoder, tokens[i], i == 0);
        break;
      case Decoder::Kind::byte_level:
        text += bytes_of_token(tokens[i]).value_or(std::string(tokens[i]));
        break;
      case Decoder::Kind::metaspace:
        text += metaspace_part(decoder, tokens[i], i == 0);
        break;
      case Decoder::Kind::unavailable:
        throw DataError(
            "{} is not available, so ids cannot be turned into text; available are WordPiece, ByteLevel and Metaspace",
            decoder.type);
    }
  }
  std::string repaired;
  return std::string(replace_invalid_utf8(text, repaired));
}

}  // namespace stretto::text
