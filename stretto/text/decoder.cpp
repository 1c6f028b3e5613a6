#include "stretto/text/decoder.h"

#include <array>
#include <cctype>
#include <utility>

#include <fmt/ranges.h>

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

// The byte that a token such as <0xE4> represents; -1 for other tokens.
int fallback_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return -1;
  int value = 0;
  for (const char c : token.substr(3, 2)) {
    if (!std::isxdigit(static_cast<unsigned char>(c))) return -1;
    value = 16 * value + (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
  }
  return value;
}

std::vector<std::string> without_byte_tokens(std::vector<std::string> tokens) {
  std::vector<std::string> result;
  std::string bytes;
  const auto close = [&] {
    const bool is_text = find_invalid_utf8(bytes) == bytes.size();
    for (size_t i = 0; !is_text && i < bytes.size(); ++i) result.emplace_back("\uFFFD");
    if (is_text && !bytes.empty()) result.push_back(bytes);
    bytes.clear();
  };
  for (std::string& token : tokens) {
    const int byte = fallback_byte(token);
    if (byte >= 0) {
      bytes.push_back(static_cast<char>(byte));
      continue;
    }
    close();
    result.push_back(std::move(token));
  }
  close();
  return result;
}

void strip(std::string& token, const DecoderStep& step) {
  const std::string& mark = step.from;
  for (size_t i = 0; i < step.start && token.starts_with(mark); ++i) token.erase(0, mark.size());
  for (size_t i = 0; i < step.stop && token.ends_with(mark); ++i) token.resize(token.size() - mark.size());
}

std::vector<std::string> apply(const DecoderStep& step, std::vector<std::string> tokens) {
  switch (step.kind) {
    case DecoderStep::Kind::replace:
      for (std::string& token : tokens) replace_all(token, step.from, step.to);
      return tokens;
    case DecoderStep::Kind::byte_fallback:
      return without_byte_tokens(std::move(tokens));
    case DecoderStep::Kind::fuse:
      return {fmt::format("{}", fmt::join(tokens, ""))};
    case DecoderStep::Kind::strip:
      for (std::string& token : tokens) strip(token, step);
      return tokens;
  }
  return tokens;
}

std::string decode_by_steps(const Decoder& decoder, std::span<const std::string_view> tokens) {
  std::vector<std::string> texts(tokens.begin(), tokens.end());
  for (const DecoderStep& step : decoder.steps) texts = apply(step, std::move(texts));
  return fmt::format("{}", fmt::join(texts, ""));
}

}  // namespace

std::string decode_tokens(const Decoder& decoder, std::span<const std::string_view> tokens) {
  if (decoder.kind == Decoder::Kind::steps) return decode_by_steps(decoder, tokens);
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
      case Decoder::Kind::steps:
        break;
      case Decoder::Kind::unavailable:
        throw DataError(
            "{} is not available, so ids cannot be turned into text; available are WordPiece, ByteLevel, Metaspace, and Replace, ByteFallback, Fuse and Strip",
            decoder.type);
    }
  }
  std::string repaired;
  return std::string(replace_invalid_utf8(text, repaired));
}

}  // namespace stretto::text
