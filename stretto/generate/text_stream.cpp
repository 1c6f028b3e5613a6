#include "stretto/generate/text_stream.h"

#include <algorithm>
#include <utility>

namespace stretto::generate {
namespace {

// U+FFFD, which replaces bytes that are not a character
constexpr std::string_view replacement = "\xEF\xBF\xBD";

// Text of tokens from the middle of a character begins with a replacement, as does that of invalid bytes.
bool begins_with_character(std::string_view text) { return !text.empty() && !text.starts_with(replacement); }

// The length of the longest suffix of `text` that is a prefix of `stop`.
size_t overlap(std::string_view text, std::string_view stop) {
  size_t length = std::min(text.size(), stop.size());
  while (!text.ends_with(stop.substr(0, length))) --length;
  return length;
}

}  // namespace

TextStream::TextStream(const text::Tokenizer& tokenizer, std::span<const int32_t> prompt,
                       std::vector<std::string> stop)
    : tokenizer_(tokenizer),
      prompt_(prompt.begin(), prompt.end()),
      prompt_text_(tokenizer.decode(prompt)),
      stop_(std::move(stop)),
      joined_(tokenizer) {
  for (const std::string& one : stop_) longest_stop_ = std::max(longest_stop_, one.size());
  size_t returned = 0;
  for (const int32_t token : prompt) returned += joined_->add(token).size();
  prompt_rest_ = prompt_text_.substr(returned);
  if (!prompt_rest_.empty()) alone_.emplace(tokenizer);
}

// Decoders may treat the first token of a text specially, so the prompt is decoded with the new tokens.
std::string TextStream::decode(std::span<const int32_t> new_tokens) const {
  std::vector<int32_t> all = prompt_;
  all.insert(all.end(), new_tokens.begin(), new_tokens.end());
  const std::string whole = tokenizer_.decode(all);
  return whole.starts_with(prompt_text_) ? whole.substr(prompt_text_.size()) : tokenizer_.decode(new_tokens);
}

size_t TextStream::first_stop(std::string_view text) const {
  size_t first = std::string_view::npos;
  for (const std::string& stop : stop_) first = std::min(first, text.find(stop));
  return first;
}

std::string TextStream::text(std::span<const int32_t> new_tokens) const {
  const std::string all = decode(new_tokens);
  return all.substr(0, first_stop(all));
}

// False only if the last token completes no stop string. The text of the last tokens is the end of the whole
// text if it begins with a character, apart from its first token, which decoders may treat specially.
bool TextStream::may_be_stopped(std::span<const int32_t> new_tokens) const {
  size_t count = longest_stop_ + 3;
  if (count >= new_tokens.size()) return true;
  const auto text_of_last = [&](size_t tokens) { return tokenizer_.decode(new_tokens.last(tokens)); };
  // The last token may complete a character that begins up to three bytes before it; the replacement, which
  // this text then has, is as long. One more token, since it may be treated specially.
  const size_t needed = longest_stop_ + text_of_last(2).size();
  for (; count < new_tokens.size(); count *= 2) {
    const std::string text = text_of_last(count);
    const size_t of_first = tokenizer_.decode(new_tokens.last(count).first(1)).size();
    if (begins_with_character(text) && text.size() >= of_first + needed)
      return first_stop(text) != std::string_view::npos;
  }
  return true;
}

bool TextStream::is_stopped(std::span<const int32_t> new_tokens) const {
  return !stop_.empty() && may_be_stopped(new_tokens) &&
         first_stop(decode(new_tokens)) != std::string_view::npos;
}

std::string TextStream::add(int32_t token) {
  if (is_ended_) return "";
  held_ += add_text(token);
  const size_t end = first_stop(held_);
  is_ended_ = end != std::string::npos;
  if (is_ended_) held_.resize(end);
  size_t kept = 0;
  for (const std::string& stop : stop_) kept = std::max(kept, overlap(held_, stop));
  const std::string piece = held_.substr(0, held_.size() - kept);
  held_.erase(0, piece.size());
  return piece;
}

// What the next token adds to decode() of the tokens.
std::string TextStream::add_text(int32_t token) {
  std::string joined = joined_ ? joined_->add(token) : "";
  if (!alone_) return joined;
  std::string alone = alone_->add(token);
  if (!joined_) return alone;
  joined_text_ += joined;
  alone_text_ += alone;
  const size_t known = std::min(joined_text_.size(), prompt_rest_.size());
  if (joined_text_.compare(0, known, prompt_rest_, 0, known) != 0) {
    joined_.reset();
    return std::exchange(alone_text_, {});
  }
  if (known < prompt_rest_.size()) return "";
  alone_.reset();
  return joined_text_.substr(known);
}

}  // namespace stretto::generate
