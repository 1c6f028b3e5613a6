#include "stretto/text/decoder.h"

#include <algorithm>
#include <array>
#include <cctype>
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

void strip(std::string& token, const DecoderStep& step) {
  const std::string& mark = step.from;
  for (size_t i = 0; i < step.start && token.starts_with(mark); ++i) token.erase(0, mark.size());
  for (size_t i = 0; i < step.stop && token.ends_with(mark); ++i) token.resize(token.size() - mark.size());
}

// Removes up to `left` characters `from` from the beginning of a text, of which this is the next piece of
// whole characters.
void strip_start(std::string& piece, const DecoderStep& step, size_t& left) {
  for (; left > 0 && piece.starts_with(step.from); --left) piece.erase(0, step.from.size());
  if (!piece.empty()) left = 0;
}

// What a token adds to a text. Throws DataError for an unavailable decoder.
std::string part_of(const Decoder& decoder, std::string_view token, bool first) {
  switch (decoder.kind) {
    case Decoder::Kind::join_by_space:
      return (first ? "" : " ") + std::string(token);
    case Decoder::Kind::wordpiece:
      return wordpiece_part(decoder, token, first);
    case Decoder::Kind::byte_level:
      return bytes_of_token(token).value_or(std::string(token));
    case Decoder::Kind::metaspace:
      return metaspace_part(decoder, token, first);
    case Decoder::Kind::steps:
      break;
    case Decoder::Kind::unavailable:
      throw DataError(
          "{} is not available, so ids cannot be turned into text; available are WordPiece, ByteLevel, Metaspace, and Replace, ByteFallback, Fuse and Strip",
          decoder.type);
  }
  return std::string(token);
}

// The length of `text` without an incomplete character at its end, which further bytes may complete.
size_t length_of_whole_characters(std::string_view text) {
  constexpr size_t longest = 4;
  for (size_t back = 1; back <= std::min(longest - 1, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if (!is_lead_byte(text[text.size() - back])) continue;
    const size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return length > back ? text.size() - back : text.size();
  }
  return text.size();
}

}  // namespace

std::string decode_tokens(const Decoder& decoder, std::span<const std::string_view> tokens) {
  DecoderStream stream(decoder);
  std::string text;
  for (const std::string_view token : tokens) text += stream.add(token);
  return text + stream.finish();
}

DecoderStream::DecoderStream(const Decoder& decoder)
    : decoder_(&decoder), states_(decoder.steps.size()), fuse_(decoder.steps.size()) {
  for (size_t i = decoder.steps.size(); i-- > 0;) {
    const DecoderStep& step = decoder.steps[i];
    if (step.kind == DecoderStep::Kind::fuse) fuse_ = i;
    states_[i].left_to_strip = step.start;
  }
  for (size_t i = fuse_; i < decoder.steps.size(); ++i) {
    const DecoderStep& step = decoder.steps[i];
    const bool strips_start = step.kind == DecoderStep::Kind::strip && step.stop == 0;
    needs_whole_text_ |= !(strips_start || step.kind == DecoderStep::Kind::fuse);
  }
}

std::string DecoderStream::add(std::string_view token) {
  std::string text;
  if (decoder_->kind == Decoder::Kind::steps) {
    give(0, std::string(token), text);
    return text;
  }
  bytes_ += part_of(*decoder_, token, is_first_);
  is_first_ = false;
  return take(length_of_whole_characters(bytes_));
}

std::string DecoderStream::finish() {
  if (decoder_->kind != Decoder::Kind::steps) return take(bytes_.size());
  std::string text;
  for (size_t i = 0; i < states_.size(); ++i) {
    if (i == fuse_) {
      has_ended_ = true;
      give(i, std::exchange(states_[i].held, {}), text);
    }
    end_run(i, text);
  }
  return text;
}

// The first bytes that were not returned, as text.
std::string DecoderStream::take(size_t bytes) {
  std::string repaired;
  std::string text(replace_invalid_utf8(std::string_view(bytes_).substr(0, bytes), repaired));
  bytes_.erase(0, bytes);
  return text;
}

// Gives a token to a step, which passes on what it makes of it; behind the last step it is text.
void DecoderStream::give(size_t step, std::string token, std::string& text) {
  if (step == states_.size()) {
    text += token;
    return;
  }
  const DecoderStep& action = decoder_->steps[step];
  StepState& state = states_[step];
  switch (action.kind) {
    case DecoderStep::Kind::replace:
      replace_all(token, action.from, action.to);
      break;
    case DecoderStep::Kind::byte_fallback:
      if (const int byte = fallback_byte(token); byte >= 0) {
        state.held.push_back(static_cast<char>(byte));
        return;
      }
      end_run(step, text);
      break;
    case DecoderStep::Kind::fuse:
      if (step == fuse_ && needs_whole_text_ && !has_ended_) {
        state.held += token;
        return;
      }
      break;
    case DecoderStep::Kind::strip:
      if (step > fuse_ && !needs_whole_text_) {
        strip_start(token, action, state.left_to_strip);
      } else {
        strip(token, action);
      }
      break;
  }
  give(step + 1, std::move(token), text);
}

// Passes on the bytes of a run of tokens such as <0xE4>.
void DecoderStream::end_run(size_t step, std::string& text) {
  if (decoder_->steps[step].kind != DecoderStep::Kind::byte_fallback) return;
  const std::string bytes = std::exchange(states_[step].held, {});
  if (bytes.empty()) return;
  if (find_invalid_utf8(bytes) == bytes.size()) return give(step + 1, bytes, text);
  for (size_t i = 0; i < bytes.size(); ++i) give(step + 1, "\uFFFD", text);
}

}  // namespace stretto::text
